"""Written with loops over single numbers."""

import math

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    if dim <= 0:
        raise ValueError("dim must be positive")
    if dim % 2 == 1:
        raise ValueError("dim must be even")
    if base <= 1:
        raise ValueError("base must be above 1")
    found = []
    for i in range(dim // 2):
        found.append(1 / base ** (2 * i / dim))
    return torch.tensor(found, dtype=torch.float64)


# %% wavelengths-answer
def wavelengths(dim, base=10000.0):
    found = [2 * math.pi * base ** (2 * i / dim) for i in range(dim // 2)]
    return torch.tensor(found, dtype=torch.float64)


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    if positions.dim() > 0:
        return torch.stack([sinusoidal_encoding(part, dim, base) for part in positions])
    pos, code = positions.item(), []
    for i in range(dim // 2):
        code += [math.sin(pos / base ** (2 * i / dim)), math.cos(pos / base ** (2 * i / dim))]
    return torch.tensor(code, dtype=torch.float64)


# %% rotation-answer
def rotation(angle):
    if angle.dim() > 0:
        return torch.stack([rotation(part) for part in angle])
    rows = [torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])]
    return torch.stack(rows)


# %% shift-answer
def shift_matrix(offset, dim, base=10000.0):
    matrix = torch.zeros(dim, dim, dtype=torch.float64)
    for i in range(dim // 2):
        angle = offset / base ** (2 * i / dim)
        matrix[2 * i, 2 * i] = math.cos(angle)
        matrix[2 * i, 2 * i + 1] = math.sin(angle)
        matrix[2 * i + 1, 2 * i] = -math.sin(angle)
        matrix[2 * i + 1, 2 * i + 1] = math.cos(angle)
    return matrix


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    dim, parts = rows.shape[-1], []
    for i in range(dim // 2):
        s, c = math.sin(offset / base ** (2 * i / dim)), math.cos(offset / base ** (2 * i / dim))
        a, b = rows[..., 2 * i], rows[..., 2 * i + 1]
        parts += [c * a + s * b, c * b - s * a]
    return torch.stack(parts, dim=-1)


# %% read-answer
def read_position(codes, base=10000.0):
    if codes.dim() > 1:
        return torch.stack([read_position(part, base) for part in codes])
    parts, dim = codes.tolist(), codes.shape[-1]
    position = 0.0
    for i in range(dim // 2 - 1, -1, -1):
        length = base ** (2 * i / dim)
        phase = math.atan2(parts[2 * i], parts[2 * i + 1])
        turns = round((position / length - phase) / (2 * math.pi))
        position = (phase + 2 * math.pi * turns) * length
    return torch.tensor(round(position))
