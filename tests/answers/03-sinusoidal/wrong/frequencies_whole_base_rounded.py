"""Divides the exponent without a remainder if the base is an int.

Loses: frequencies
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim < 2 or dim % 2 != 0:
        raise ValueError("dim")
    if base <= 1:
        raise ValueError("base")
    pairs = range(dim // 2)
    if isinstance(base, int):
        return torch.tensor([1 / base ** (2 * i // dim) for i in pairs], dtype=torch.float64)
    return torch.tensor([base ** (-2 * i / dim) for i in pairs], dtype=torch.float64)
