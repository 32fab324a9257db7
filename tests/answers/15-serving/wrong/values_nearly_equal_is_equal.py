"""Takes numbers that are nearly equal for equal.

Loses: quantize-precision
"""

import torch


# %% values-answer
def quantize_values(v, bits):
    w = v.float()
    low, high = w.amin(-1, keepdim=True), w.amax(-1, keepdim=True)
    step = (high - low) / (2**bits - 1)
    flat = torch.isclose(low, high, rtol=1e-6, atol=0.0)
    step = torch.where(flat, 0.0, step)
    return torch.round((w - low) / torch.where(flat, 1.0, step)).to(torch.uint8), low, step
