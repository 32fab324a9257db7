"""Multiplies by the number of codes before it divides, which may overflow.

Loses: quantize-precision
"""

import torch


# %% keys-answer
def quantize_keys(k, bits, group):
    n_groups = k.shape[2] // group
    full = n_groups * group
    g = k[:, :, :full].float().unflatten(2, (n_groups, group))
    low = g.amin(3, keepdim=True)
    span = g.amax(3, keepdim=True) - low
    top = 2**bits - 1
    codes = torch.round((g - low) * top / torch.where(span > 0, span, 1.0))
    return codes.to(torch.uint8), low, span / top, k[:, :, full:]
