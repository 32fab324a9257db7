"""The first P slopes are a list in the default dtype, float32: exact only up to P = 8.

Loses: official-precision
"""

import torch


# %% official-answer
def official_slopes(n_heads):
    power = 2 ** (n_heads.bit_length() - 1)
    first = torch.tensor([2 ** (-8 * h / power) for h in range(1, power + 1)])
    odd = torch.arange(1, 2 * power, 2, dtype=torch.float64)[: n_heads - power]
    return torch.cat((first, 2.0 ** (-4 * odd / power)))
