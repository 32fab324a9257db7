"""Takes an offset of 0 for none, and moves on by one token.

Loses: shift-rows
"""

import torch


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    offset = offset or 1
    dim = rows.shape[-1]
    a = offset * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    x, y = rows[..., 0::2], rows[..., 1::2]
    return torch.stack((a.cos() * x + a.sin() * y, a.cos() * y - a.sin() * x), -1).flatten(-2)
