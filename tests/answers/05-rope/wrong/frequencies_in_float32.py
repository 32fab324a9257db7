"""Computes in float32 and then changes the dtype.

Loses: frequencies-precision
"""

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    return (base ** (-torch.arange(0, head_dim, 2).float() / head_dim)).double()
