"""Squeezes the slopes: a single head gets a number in place of a list.

Loses: geometric-slopes
"""

import torch


# %% geometric-answer
def geometric_slopes(n_heads):
    h = torch.arange(1, n_heads + 1, dtype=torch.float64)
    return (2.0 ** (-8 * h / n_heads)).squeeze()
