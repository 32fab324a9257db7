"""The exponent is −i/d: the frequencies run down to 1/√base only.

Loses: frequencies, frequencies-precision
"""

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    pair = torch.arange(head_dim // 2, dtype=torch.float64)
    return base ** (-pair / head_dim)
