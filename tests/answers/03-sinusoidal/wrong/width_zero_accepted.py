"""Odd widths are refused, and 0 and negative ones are not.

Loses: frequencies
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim % 2:
        raise ValueError(f"dim must be even, got {dim}")
    if base <= 1:
        raise ValueError(f"base must be above 1, got {base}")
    return base ** (-torch.arange(0, max(dim, 0), 2, dtype=torch.float64) / max(dim, 1))
