"""The offset becomes a float32 tensor: 0.3 loses its last digits.

Loses: shift-precision
"""

import torch


# %% shift-answer
def shift_matrix(offset, dim, base=10000.0):
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    phases = torch.tensor(float(offset)) * frequencies
    cos, sin = phases.cos(), phases.sin()
    rows = (torch.stack((cos, sin), dim=-1), torch.stack((-sin, cos), dim=-1))
    return torch.block_diag(*torch.stack(rows, dim=-2))
