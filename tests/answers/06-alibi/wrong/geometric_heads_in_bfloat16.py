"""Counts the heads in bfloat16, which is exact up to 256.

Loses: geometric-slopes, geometric-precision
"""

import torch


# %% geometric-answer
def geometric_slopes(n_heads):
    h = torch.arange(1, n_heads + 1).to(torch.bfloat16).double()
    return 2.0 ** (-8 * h / n_heads)
