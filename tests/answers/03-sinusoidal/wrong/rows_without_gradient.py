"""Detached: right values, and no gradient.

Loses: shift-rows
"""

import torch


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    dim = rows.shape[-1]
    phases = offset * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    cos, sin = phases.cos(), phases.sin()
    first, second = rows.detach()[..., 0::2], rows.detach()[..., 1::2]
    moved = (cos * first + sin * second, cos * second - sin * first)
    return torch.stack(moved, dim=-1).flatten(-2)
