"""The official code's rule in place of the paper's sentence.

Loses: geometric-slopes, geometric-precision
"""

import torch


# %% geometric-answer
def geometric_slopes(n_heads):
    power = 2 ** (n_heads.bit_length() - 1)
    first = torch.arange(1, power + 1, dtype=torch.float64)
    odd = torch.arange(1, 2 * power, 2, dtype=torch.float64)[: n_heads - power]
    return torch.cat((2.0 ** (-8 * first / power), 2.0 ** (-4 * odd / power)))
