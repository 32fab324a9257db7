"""Subtracts the smallest number from the caller's values.

Loses: quantize-values
"""

import torch


# %% values-answer
def quantize_values(v, bits):
    wide = v.float()
    low = wide.amin(dim=-1, keepdim=True)
    step = (wide.amax(dim=-1, keepdim=True) - low) / (2**bits - 1)
    codes = torch.round(wide.sub_(low) / torch.where(step > 0, step, 1.0))
    return codes.to(torch.uint8), low, step
