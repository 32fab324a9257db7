"""The base becomes a float32 tensor: 12345.678 loses its last digits.

Loses: wavelengths-precision
"""

import math

import torch


# %% wavelengths-answer
def wavelengths(dim, base=10000.0):
    return 2 * math.pi * torch.tensor(base) ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
