"""The right ends, and in between evenly spaced: right for the two pairs of the visible test.

Loses: frequencies, frequencies-precision
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim < 2 or dim % 2 or base <= 1:
        raise ValueError(f"dim={dim}, base={base}")
    return torch.linspace(1, base ** (2 / dim - 1), dim // 2, dtype=torch.float64)
