"""Each pair as one complex number."""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    phases = positions.double()[..., None] * base**-exponents
    turned = torch.polar(torch.ones_like(phases), phases)  # cos + i sin
    return torch.view_as_real(turned).flip(-1).flatten(-2)


# %% rotation-answer
def rotation(angle):
    turned = torch.polar(torch.ones_like(angle), angle)
    first = torch.view_as_real(turned)  # where (1, 0) goes
    second = torch.view_as_real(turned * 1j)  # where (0, 1) goes
    return torch.stack((first, second), dim=-1)


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    dim = rows.shape[-1]
    phases = offset * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    points = torch.view_as_complex(rows.reshape(*rows.shape[:-1], dim // 2, 2))
    turned = points * torch.polar(torch.ones_like(phases), -phases)
    return torch.view_as_real(turned).reshape(rows.shape)
