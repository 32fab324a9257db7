"""Through NumPy, where no gradient is asked for."""

import numpy as np
import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim not in range(2, 1_000_000, 2) or not base > 1:
        raise ValueError(f"no pairs with dim={dim}, base={base}")
    return torch.from_numpy(np.power(float(base), -np.arange(0, dim, 2) / dim))


# %% wavelengths-answer
def wavelengths(dim, base=10000.0):
    shortest, longest = 2 * np.pi, 2 * np.pi * base ** ((dim - 2) / dim)
    return torch.from_numpy(np.geomspace(shortest, longest, dim // 2))


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    pos = positions.numpy().astype(np.float64)
    phases = pos[..., None] * float(base) ** (-np.arange(0, dim, 2) / dim)
    codes = np.empty((*pos.shape, dim))
    codes[..., 0::2], codes[..., 1::2] = np.sin(phases), np.cos(phases)
    return torch.from_numpy(codes)


# %% shift-answer
def shift_matrix(offset, dim, base=10000.0):
    phases = offset * float(base) ** (-np.arange(0, dim, 2) / dim)
    turn = np.repeat(np.sin(phases), 2)[:-1]
    turn[1::2] = 0
    matrix = np.diag(np.repeat(np.cos(phases), 2)) + np.diag(turn, 1) - np.diag(turn, -1)
    return torch.from_numpy(matrix)
