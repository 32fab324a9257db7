"""Ignores the base.

Loses: frequencies, frequencies-precision
"""

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    return 10000.0 ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
