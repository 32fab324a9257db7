"""Refuses bases that are above 1 by less than 1e-12.

Loses: frequencies
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim < 2 or dim % 2 != 0:
        raise ValueError("dim")
    if base <= 1 + 1e-12:
        raise ValueError("base")
    return base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
