"""Multiplies by the number of codes before it divides, which may overflow.

Loses: quantize-precision
"""

import torch


# %% values-answer
def quantize_values(v, bits):
    w = v.float()
    low = w.amin(-1, keepdim=True)
    span = w.amax(-1, keepdim=True) - low
    top = 2**bits - 1
    return (
        torch.round((w - low) * top / torch.where(span > 0, span, 1.0)).to(torch.uint8),
        low,
        span / top,
    )
