"""Takes a misprint for the formula: 1/(base · √(2i/d)), 1 for pair 0.

Loses: frequencies, frequencies-precision
"""

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    pair = torch.arange(head_dim // 2, dtype=torch.float64)
    found = 1 / (base * (2 * pair / head_dim).sqrt())
    found[0] = 1
    return found
