"""Reads the phases and writes new codes: right for codes, and not linear.

Loses: shift-rows, rows-precision
"""

import torch


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    dim = rows.shape[-1]
    phases = torch.atan2(rows[..., 0::2], rows[..., 1::2])
    phases = phases + offset * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
