"""The offset becomes a float32 tensor.

Loses: rows-precision
"""

import torch


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    dim = rows.shape[-1]
    phases = torch.tensor(offset, dtype=torch.float32) * base ** (
        -torch.arange(0, dim, 2, dtype=torch.float64) / dim
    )
    cos, sin = phases.cos(), phases.sin()
    first, second = rows[..., 0::2], rows[..., 1::2]
    moved = (cos * first + sin * second, cos * second - sin * first)
    return torch.stack(moved, dim=-1).flatten(-2)
