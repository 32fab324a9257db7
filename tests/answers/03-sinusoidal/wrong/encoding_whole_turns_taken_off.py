"""Takes whole turns off the phases, and the rounding of 2π counts once for each turn.

Loses: encoding-precision
"""

import math

import torch


# %% encoding-answer
def sinusoidal_encoding(positions: torch.Tensor, dim: int, base: float = 10000.0) -> torch.Tensor:
    omega = torch.pow(base, -torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    phases = positions.double()[..., None] * omega
    phases = phases % (2 * math.pi)  # sine and cosine are most precise for small angles
    result = torch.empty(*positions.shape, dim, dtype=torch.float64)
    result[..., 0::2] = torch.sin(phases)
    result[..., 1::2] = torch.cos(phases)
    return result
