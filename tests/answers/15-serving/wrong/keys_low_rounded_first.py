"""Rounds low to float32 first, so equal numbers of float64 have a step.

Loses: quantize-precision
"""

import torch


# %% keys-answer
def quantize_keys(k, bits, group):
    n_groups = k.shape[2] // group
    full = n_groups * group
    g = k[:, :, :full].unflatten(2, (n_groups, group))
    g = g if g.dtype == torch.float64 else g.float()
    low = g.amin(3, keepdim=True).float()
    step = ((g.amax(3, keepdim=True) - low) / (2**bits - 1)).float()
    codes = torch.round((g - low) / torch.where(step != 0, step, 1.0)).clamp(0, 2**bits - 1)
    return codes.to(torch.uint8), low, step, k[:, :, full:]
