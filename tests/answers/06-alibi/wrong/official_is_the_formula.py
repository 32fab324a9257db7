"""2^(−8h/H) also where H is no power of two.

Loses: official-slopes, official-precision
"""

import torch


# %% official-answer
def official_slopes(n_heads):
    return 2.0 ** (-8 * torch.arange(1, n_heads + 1, dtype=torch.float64) / n_heads)
