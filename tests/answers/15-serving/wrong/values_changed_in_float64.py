"""Subtracts in place after `.double()`, which is no copy of float64.

Loses: quantize-precision
"""

import torch


# %% values-answer
def quantize_values(v, bits):
    wide = v.double()
    low = wide.amin(dim=-1, keepdim=True)
    step = (wide.amax(dim=-1, keepdim=True) - low) / (2**bits - 1)
    wide -= low
    codes = torch.round(wide / torch.where(step > 0, step, 1.0))
    return codes.to(torch.uint8), low.float(), step.float()
