"""Squares the step of one token again and again for whole offsets; its rounding grows.

Loses: rows-precision
"""

import torch


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    whole = float(offset).is_integer() and offset > 0
    phases = base ** (-torch.arange(0, rows.shape[-1], 2, dtype=torch.float64) / rows.shape[-1])
    phases = phases if whole else phases * offset
    step = torch.polar(torch.ones_like(phases), -phases)
    turn = torch.ones_like(step) if whole else step
    left = int(offset) if whole else 0
    while left:
        turn = turn * step if left % 2 else turn
        step, left = step * step, left // 2
    pairs = torch.complex(rows[..., 0::2], rows[..., 1::2]) * turn
    return torch.view_as_real(pairs).flatten(-2)
