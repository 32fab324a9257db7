"""The second line uses the first component after it was changed.

Loses: shift-rows, rows-precision
"""

import torch


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    rows = rows.clone()
    dim = rows.shape[-1]
    phases = offset * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    cos, sin = phases.cos(), phases.sin()
    rows[..., 0::2] = cos * rows[..., 0::2] + sin * rows[..., 1::2]
    rows[..., 1::2] = cos * rows[..., 1::2] - sin * rows[..., 0::2]
    return rows
