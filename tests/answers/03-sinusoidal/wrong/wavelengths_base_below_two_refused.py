"""Refuses bases between 1 and 2.

Loses: wavelengths
"""

import math

import torch


# %% wavelengths-answer
def wavelengths(dim, base=10000.0):
    if base < 2:
        raise ValueError("base")
    return 2 * math.pi * base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
