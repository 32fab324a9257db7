"""The exponents count up by a fraction, and at some numbers of heads by one step too many.

Loses: geometric-slopes, geometric-precision
"""

import torch


# %% geometric-answer
def geometric_slopes(n_heads):
    step = 8 / n_heads
    return 2.0 ** -torch.arange(step, 8 + step, step, dtype=torch.float64)
