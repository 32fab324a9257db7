"""The slopes in reversed order.

Loses: geometric-slopes, geometric-precision
"""

import torch


# %% geometric-answer
def geometric_slopes(n_heads):
    h = torch.arange(n_heads, 0, -1, dtype=torch.float64)
    return 2.0 ** (-8 * h / n_heads)
