"""Squeezes the result: a single pair gets a number in place of a list.

Loses: frequencies
"""

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    pair = torch.arange(head_dim // 2, dtype=torch.float64)
    return (base ** (-2 * pair / head_dim)).squeeze()
