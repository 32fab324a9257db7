"""All tokens of a channel form one group, however many they are.

Loses: quantize-keys, quantize-precision
"""

import torch


# %% keys-answer
def quantize_keys(k, bits, group):
    n_groups = k.shape[2] // group
    full = n_groups * group
    groups = k[:, :, :full].float().unflatten(2, (n_groups, group))
    low = groups.amin(dim=(2, 3), keepdim=True).expand(-1, -1, n_groups, 1, -1)
    step = (groups.amax(dim=(2, 3), keepdim=True) - low) / (2**bits - 1)
    codes = torch.round((groups - low) / torch.where(step > 0, step, 1.0))
    return codes.to(torch.uint8), low, step, k[:, :, full:]
