"""Spreads the frequencies from 1 to 1/base, both included.

Loses: frequencies, frequencies-precision
"""

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    if head_dim == 2:
        return torch.ones(1, dtype=torch.float64)
    return base ** -torch.linspace(0, 1, head_dim // 2, dtype=torch.float64)
