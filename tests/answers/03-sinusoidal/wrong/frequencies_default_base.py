"""Without a base it takes 1000.

Loses: frequencies
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=1000.0):
    if dim < 2 or dim % 2:
        raise ValueError("dim")
    if not base > 1:
        raise ValueError("base")
    return base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
