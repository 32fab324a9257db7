"""Makes the base a tensor of the default dtype: right for bases that float32 holds.

Loses: frequencies-precision
"""

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    pair = torch.arange(head_dim // 2, dtype=torch.float64)
    return torch.tensor(base).double() ** (-2 * pair / head_dim)
