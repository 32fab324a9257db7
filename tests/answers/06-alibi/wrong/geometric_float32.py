"""Computed in float32, and made float64 afterwards.

Loses: geometric-precision
"""

import torch


# %% geometric-answer
def geometric_slopes(n_heads):
    h = torch.arange(1, n_heads + 1)
    return (2.0 ** (-8 * h / n_heads)).double()
