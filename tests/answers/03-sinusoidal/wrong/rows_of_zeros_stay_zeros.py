"""Rows of zeros are new zeros, through which no gradient flows.

Loses: shift-rows
"""

import torch


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    if not rows.any():
        return torch.zeros_like(rows)
    dim = rows.shape[-1]
    omega = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    c, s = (offset * omega).cos(), (offset * omega).sin()
    first, second = rows[..., 0::2], rows[..., 1::2]
    return torch.stack((c * first + s * second, c * second - s * first), -1).flatten(-2)
