"""As the official code is organized: a function for powers of two, called twice."""

import math

import torch


# %% official-answer
def official_slopes(n_heads):
    def power_of_two(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n_heads).is_integer():
        return torch.tensor(power_of_two(n_heads), dtype=torch.float64)
    power = 2 ** math.floor(math.log2(n_heads))
    extra = official_slopes(2 * power)[0::2][: n_heads - power]
    return torch.cat((official_slopes(power), extra))
