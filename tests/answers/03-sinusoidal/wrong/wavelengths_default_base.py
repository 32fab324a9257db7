"""Without a base it takes 1000.

Loses: wavelengths
"""

import math

import torch


# %% wavelengths-answer
def wavelengths(dim, base=1000.0):
    return 2 * math.pi * base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
