"""Takes low off the keys of the caller where a group is one token.

Loses: quantize-keys
"""

import torch


# %% keys-answer
def quantize_keys(k, bits, group):
    n_groups = k.shape[2] // group
    full = n_groups * group
    g = k[:, :, :full].float().unflatten(2, (n_groups, group))
    low = g.amin(3, keepdim=True)
    step = (g.amax(3, keepdim=True) - low) / (2**bits - 1)
    if group == 1:
        g.sub_(low)
        return g.to(torch.uint8), low, step, k[:, :, full:]
    return (
        torch.round((g - low) / torch.where(step > 0, step, 1.0)).to(torch.uint8),
        low,
        step,
        k[:, :, full:],
    )
