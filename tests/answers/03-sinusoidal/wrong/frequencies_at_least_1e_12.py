"""No frequency is below 1e-12.

Loses: frequencies-precision
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim < 2 or dim % 2 != 0 or not base > 1:
        raise ValueError("bad")
    return (base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)).clamp(min=1e-12)
