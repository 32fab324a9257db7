"""The exponents are divided as whole numbers: right for 1, 2, 4 and 8 heads.

Loses: geometric-slopes, geometric-precision
"""

import torch


# %% geometric-answer
def geometric_slopes(n_heads):
    h = torch.arange(1, n_heads + 1, dtype=torch.float64)
    return 2.0 ** (-8 * h // n_heads)
