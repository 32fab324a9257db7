"""The phase is taken for degrees.

Loses: encoding-values, encoding-edges, encoding-precision
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    phases = torch.deg2rad(positions.double().unsqueeze(-1) * frequencies)
    return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
