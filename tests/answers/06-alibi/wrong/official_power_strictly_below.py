"""Takes P below H also where H is a power of two: right slopes, wrong order.

Loses: official-slopes
"""

import torch


# %% official-answer
def official_slopes(n_heads):
    power = 2 ** ((n_heads - 1).bit_length() - 1) if n_heads > 1 else 1
    first = 2.0 ** (-8 * torch.arange(1, power + 1, dtype=torch.float64) / power)
    double = 2.0 ** (-4 * torch.arange(1, 2 * power + 1, dtype=torch.float64) / power)
    return torch.cat((first, double[0::2][: n_heads - power]))
