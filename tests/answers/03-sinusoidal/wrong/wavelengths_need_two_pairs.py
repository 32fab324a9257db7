"""Spaces the exponents between the first and the last pair: with one pair that is 0 / 0.

Loses: wavelengths
"""

import math

import torch


# %% wavelengths-answer
def wavelengths(dim, base=10000.0):
    pairs = dim // 2
    steps = torch.arange(pairs, dtype=torch.float64) / (pairs - 1)
    return 2 * math.pi * base ** (steps * (dim - 2) / dim)
