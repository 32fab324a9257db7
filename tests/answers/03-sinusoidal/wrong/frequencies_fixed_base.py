"""The base is always 10000.

Loses: frequencies, frequencies-precision
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim < 2 or dim % 2 or base <= 1:
        raise ValueError(f"dim={dim}, base={base}")
    return 10000 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
