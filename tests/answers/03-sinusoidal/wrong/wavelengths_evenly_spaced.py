"""Evenly spaced between the shortest and the longest: right for two pairs.

Loses: wavelengths, wavelengths-precision
"""

import math

import torch


# %% wavelengths-answer
def wavelengths(dim, base=10000.0):
    longest = 2 * math.pi * base ** ((dim - 2) / dim)
    return torch.linspace(2 * math.pi, longest, dim // 2, dtype=torch.float64)
