"""Gives a frequency for each component, every one twice.

Loses: frequencies, frequencies-precision
"""

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    pair = torch.arange(head_dim // 2, dtype=torch.float64)
    return (base ** (-2 * pair / head_dim)).repeat_interleave(2)
