"""The exponents are divided as whole numbers: right up to 8 heads.

Loses: official-slopes, official-precision
"""

import torch


# %% official-answer
def official_slopes(n_heads):
    power = 2 ** (n_heads.bit_length() - 1)
    first = [2.0 ** (-8 * h // power) for h in range(1, power + 1)]
    odd = [2.0 ** (-4 * i // power) for i in range(1, 2 * power, 2)]
    return torch.tensor(first + odd[: n_heads - power], dtype=torch.float64)
