"""One pair turns at the same speed for every base, so with dim=2 the base is not checked.

Loses: frequencies
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim < 2 or dim % 2 != 0:
        raise ValueError("dim")
    if dim == 2:
        return torch.ones(1, dtype=torch.float64)
    if base <= 1:
        raise ValueError("base")
    return base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
