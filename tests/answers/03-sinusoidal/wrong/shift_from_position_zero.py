"""One outer product: it takes PE(0) to PE(Δ), and no other position.

Loses: shift-matrix, shift-precision
"""

import torch


# %% shift-answer
def shift_matrix(offset, dim, base=10000.0):
    phases = offset * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    end = torch.stack((phases.sin(), phases.cos()), dim=-1).flatten()
    start = torch.tensor([0.0, 1.0] * (dim // 2), dtype=torch.float64)
    return torch.outer(end, start) / (dim // 2)
