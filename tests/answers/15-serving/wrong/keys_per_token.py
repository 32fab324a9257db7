"""Keys are grouped along the channels, as values are.

Loses: quantize-keys, quantize-precision
"""

import torch


# %% keys-answer
def quantize_keys(k, bits, group):
    n_groups = k.shape[2] // group
    full = n_groups * group
    groups = k[:, :, :full].float().unflatten(2, (n_groups, group))
    low = groups.amin(dim=4, keepdim=True)
    step = (groups.amax(dim=4, keepdim=True) - low) / (2**bits - 1)
    codes = torch.round((groups - low) / torch.where(step > 0, step, 1.0))
    return codes.to(torch.uint8), low, step, k[:, :, full:]
