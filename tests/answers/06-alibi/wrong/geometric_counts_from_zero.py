"""The heads are counted from 0, so the first slope is 1.

Loses: geometric-slopes, geometric-precision
"""

import torch


# %% geometric-answer
def geometric_slopes(n_heads):
    h = torch.arange(n_heads, dtype=torch.float64)
    return 2.0 ** (-8 * h / n_heads)
