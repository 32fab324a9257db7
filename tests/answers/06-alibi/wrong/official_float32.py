"""Computed in float32, and made float64 afterwards.

Loses: official-precision
"""

import torch


# %% official-answer
def official_slopes(n_heads):
    power = 2 ** (n_heads.bit_length() - 1)
    first = torch.arange(1, power + 1)
    odd = torch.arange(1, 2 * power, 2)[: n_heads - power]
    return torch.cat((2.0 ** (-8 * first / power), 2.0 ** (-4 * odd / power))).double()
