"""Any base is accepted.

Loses: frequencies
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and at least 2, got {dim}")
    return base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
