"""Sorts the slopes, so that heads change places.

Loses: official-slopes, official-precision
"""

import torch


# %% official-answer
def official_slopes(n_heads):
    power = 2 ** (n_heads.bit_length() - 1)
    first = 2.0 ** (-8 * torch.arange(1, power + 1, dtype=torch.float64) / power)
    double = 2.0 ** (-4 * torch.arange(1, 2 * power + 1, dtype=torch.float64) / power)
    slopes = torch.cat((first, double[0::2][: n_heads - power]))
    return slopes.sort(descending=True).values
