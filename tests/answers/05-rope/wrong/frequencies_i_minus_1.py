"""Has i − 1 in the exponent, as the paper prints it, with i from 0.

Loses: frequencies, frequencies-precision
"""

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    pair = torch.arange(head_dim // 2, dtype=torch.float64)
    return base ** (-2 * (pair - 1) / head_dim)
