"""Nothing is refused: an odd width gets a pair too many.

Loses: frequencies
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    return base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
