"""Turns the caller's own rows.

Loses: shift-rows
"""

import torch


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    dim = rows.shape[-1]
    phases = offset * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    cos, sin = phases.cos(), phases.sin()
    first, second = rows[..., 0::2].clone(), rows[..., 1::2].clone()
    rows[..., 0::2] = cos * first + sin * second
    rows[..., 1::2] = cos * second - sin * first
    return rows
