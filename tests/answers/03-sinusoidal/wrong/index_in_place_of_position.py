"""The index slipped: the number of the row stands where the position should stand.

Loses: encoding-values, encoding-edges, encoding-precision
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    rows = torch.arange(positions.numel(), dtype=torch.float64).reshape(positions.shape)
    phases = rows.unsqueeze(-1) * frequencies
    return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
