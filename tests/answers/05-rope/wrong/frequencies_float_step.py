"""Counts the exponents with a step of 2/d up to 1, where rounding may make one too many.

Loses: frequencies
"""

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    return base ** -torch.arange(0, 1, 2 / head_dim, dtype=torch.float64)
