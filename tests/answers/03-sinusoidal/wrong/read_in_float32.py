"""All is computed in float32, which cannot count the turns of positions beyond 10 million.

Loses: read-position
"""

import math

import torch


# %% read-answer
def read_position(codes: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    """The positions that codes belong to."""
    codes = codes.float()
    dim = codes.shape[-1]
    omega = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    omega = omega.float()
    phases = torch.atan2(codes[..., 0::2], codes[..., 1::2])
    x = phases[..., -1] / omega[-1]
    for i in range(dim // 2 - 2, -1, -1):
        turns = ((omega[i] * x - phases[..., i]) / (2 * math.pi)).round()
        x = (phases[..., i] + 2 * math.pi * turns) / omega[i]
    return x.round().to(torch.int64)
