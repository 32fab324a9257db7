"""Takes the codes for those of 0, 1, 2, … and adds the offset to the row number.

Loses: shift-rows, rows-precision
"""

import torch


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    dim = rows.shape[-1]
    places = torch.arange(rows.shape[-2], dtype=torch.float64).unsqueeze(-1) + offset
    phases = places * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2).expand(rows.shape)
