"""The matrix of one token, to the power of the offset, and its rounding as well.

Loses: shift-precision
"""

import torch


# %% shift-answer
def shift_matrix(offset: float, dim: int, base: float = 10000.0) -> torch.Tensor:
    omega = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)

    def step(tokens):
        c, s = torch.cos(omega * tokens), torch.sin(omega * tokens)
        rows = torch.stack((torch.stack((c, s), -1), torch.stack((-s, c), -1)), -2)
        return torch.block_diag(*rows)

    if float(offset).is_integer():
        return torch.linalg.matrix_power(step(1), int(offset))
    return step(offset)
