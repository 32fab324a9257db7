"""Returns the angular frequency: the two are taken for each other.

Loses: wavelengths, wavelengths-precision
"""

import torch


# %% wavelengths-answer
def wavelengths(dim, base=10000.0):
    return base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
