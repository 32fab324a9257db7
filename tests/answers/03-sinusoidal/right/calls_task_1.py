"""Takes the frequencies from task 1 everywhere, the blocks from task 4, the matrix from task 5."""

import math

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim < 2 or dim % 2 or base <= 1:
        raise ValueError(f"dim={dim}, base={base}")
    i = torch.arange(dim // 2, dtype=torch.float64)
    return torch.exp(-2 * i / dim * math.log(base))


# %% wavelengths-answer
def wavelengths(dim, base=10000.0):
    return 2 * math.pi / angular_frequencies(dim, base)


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    codes = torch.zeros(*positions.shape, dim, dtype=torch.float64)
    phases = positions[..., None].double() * angular_frequencies(dim, base)
    codes[..., 0::2] = torch.sin(phases)
    codes[..., 1::2] = torch.cos(phases)
    return codes


# %% rotation-answer
def rotation(angle):
    cos, sin = torch.cos(angle), torch.sin(angle)
    return torch.stack((cos, -sin, sin, cos), dim=-1).reshape(*angle.shape, 2, 2)


# %% shift-answer
def shift_matrix(offset, dim, base=10000.0):
    angle = offset * angular_frequencies(dim, base)
    return torch.block_diag(*rotation(angle).transpose(-2, -1))


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    return rows @ shift_matrix(offset, rows.shape[-1], base).T
