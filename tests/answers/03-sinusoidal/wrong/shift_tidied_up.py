"""Sets entries below 1e-8 to 0, but for a small offset they are the sines.

Loses: shift-precision
"""

import torch


# %% shift-answer
def shift_matrix(offset: float, dim: int, base: float = 10000.0) -> torch.Tensor:
    omega = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    delta = omega * offset
    matrix = torch.zeros(dim, dim, dtype=torch.float64)
    for i, d in enumerate(delta):
        c, s = torch.cos(d), torch.sin(d)
        matrix[2 * i, 2 * i] = matrix[2 * i + 1, 2 * i + 1] = c
        matrix[2 * i, 2 * i + 1] = s
        matrix[2 * i + 1, 2 * i] = -s
    matrix[matrix.abs() < 1e-8] = 0.0  # cos(π/2) is 0 and not 6e-17
    return matrix
