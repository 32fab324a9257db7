"""Rotations, transposed and put on a diagonal, and a product with that matrix."""

import torch


# %% rotation-answer
def rotation(angle):
    zero = torch.zeros_like(angle)
    generator = torch.stack((zero, -angle, angle, zero), dim=-1).unflatten(-1, (2, 2))
    return torch.linalg.matrix_exp(generator.double()).to(angle.dtype)


# %% shift-answer
def shift_matrix(offset, dim, base=10000.0):
    blocks = []
    for i in range(dim // 2):
        angle = torch.tensor(offset * base ** (-2 * i / dim), dtype=torch.float64)
        c, s = angle.cos(), angle.sin()
        blocks.append(torch.stack((torch.stack((c, -s)), torch.stack((s, c)))).T)
    return torch.block_diag(*blocks)


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    dim = rows.shape[-1]
    phases = offset * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    cos, sin = phases.cos(), phases.sin()
    blocks = (torch.stack((cos, sin), dim=-1), torch.stack((-sin, cos), dim=-1))
    matrix = torch.block_diag(*torch.stack(blocks, dim=-2))
    return torch.einsum("ab,...b->...a", matrix, rows)
