"""Fails where no group is full.

Loses: quantize-keys, quantize-precision
"""

import torch


# %% keys-answer
def quantize_keys(k, bits, group):
    n_groups = k.shape[2] // group
    full = n_groups * group
    groups = torch.stack(k[:, :, :full].float().split(group, dim=2), dim=2)
    groups = groups.view(*k.shape[:2], n_groups, group, -1)
    low = groups.amin(dim=3, keepdim=True)
    step = (groups.amax(dim=3, keepdim=True) - low) / (2**bits - 1)
    codes = torch.round((groups - low) / torch.where(step > 0, step, 1.0))
    return codes.to(torch.uint8), low, step, k[:, :, full:]
