"""Pairs counted from 1: the shortest wavelength is missing, and the longest is 2π·base.

Loses: wavelengths, wavelengths-precision
"""

import math

import torch


# %% wavelengths-answer
def wavelengths(dim, base=10000.0):
    return 2 * math.pi * base ** (torch.arange(2, dim + 1, 2, dtype=torch.float64) / dim)
