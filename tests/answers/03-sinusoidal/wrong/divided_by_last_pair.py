"""The exponents run from 0 to 1, both ends included: linspace, or a division by d/2 − 1.

Loses: frequencies, frequencies-precision
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim < 2 or dim % 2 or base <= 1:
        raise ValueError(f"dim={dim}, base={base}")
    return base ** -torch.linspace(0, 1, dim // 2, dtype=torch.float64)
