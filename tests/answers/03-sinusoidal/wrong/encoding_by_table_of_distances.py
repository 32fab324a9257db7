"""Looks codes up by the distance to the smallest position, which overflows in int8.

Loses: encoding-edges
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    w = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if positions.is_floating_point():
        p = positions.double()[..., None] * w
    else:
        low, high = positions.min(), positions.max()
        table = torch.arange(int(low), int(high) + 1, dtype=torch.float64)[:, None] * w
        p = table[(positions - low).long()]
    return torch.stack((p.sin(), p.cos()), -1).flatten(-2)
