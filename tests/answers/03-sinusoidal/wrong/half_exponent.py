"""The exponent is i/d in place of 2i/d: half the range of frequencies.

Loses: frequencies, frequencies-precision
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim < 2 or dim % 2 or base <= 1:
        raise ValueError(f"dim={dim}, base={base}")
    return base ** (-torch.arange(dim // 2, dtype=torch.float64) / dim)
