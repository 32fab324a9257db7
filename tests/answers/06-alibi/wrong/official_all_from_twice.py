"""Takes all slopes from those for 2P heads, also at powers of two.

Loses: official-slopes, official-precision
"""

import torch


# %% official-answer
def official_slopes(n_heads):
    power = 2 ** (n_heads.bit_length() - 1)
    double = 2.0 ** (-4 * torch.arange(1, 2 * power + 1, dtype=torch.float64) / power)
    return double[:n_heads]
