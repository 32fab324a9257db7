"""The rotation of RoPE, against the clock: it moves the codes back.

Loses: shift-matrix, shift-precision
"""

import torch


# %% shift-answer
def shift_matrix(offset, dim, base=10000.0):
    phases = offset * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    cos, sin = phases.cos(), phases.sin()
    rows = (torch.stack((cos, -sin), dim=-1), torch.stack((sin, cos), dim=-1))
    return torch.block_diag(*torch.stack(rows, dim=-2))
