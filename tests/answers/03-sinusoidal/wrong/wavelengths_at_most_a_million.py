"""No wavelength is above a million tokens.

Loses: wavelengths
"""

import math

import torch


# %% wavelengths-answer
def wavelengths(dim, base=10000.0):
    return (2 * math.pi * base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)).clamp(
        max=1e6
    )
