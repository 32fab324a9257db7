"""Gives a tiny step where all numbers of a token are equal.

Loses: quantize-values, quantize-precision
"""

import torch


# %% values-answer
def quantize_values(v, bits):
    w = v.float()
    low = w.amin(-1, keepdim=True)
    step = (w.amax(-1, keepdim=True) - low) / (2**bits - 1)
    step = torch.where(step == 0, 1e-8, step)
    return torch.round((w - low) / step).to(torch.uint8), low, step
