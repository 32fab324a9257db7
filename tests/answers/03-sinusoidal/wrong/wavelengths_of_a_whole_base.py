"""Cuts the base off to a whole number.

Loses: wavelengths, wavelengths-precision
"""

import math

import torch


# %% wavelengths-answer
def wavelengths(dim, base=10000.0):
    return 2 * math.pi * int(base) ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
