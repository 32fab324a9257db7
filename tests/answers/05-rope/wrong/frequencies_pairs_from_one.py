"""Counts pairs from 1 and leaves out the frequency 1.

Loses: frequencies, frequencies-precision
"""

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    pair = torch.arange(1, head_dim // 2 + 1, dtype=torch.float64)
    return base ** (-2 * pair / head_dim)
