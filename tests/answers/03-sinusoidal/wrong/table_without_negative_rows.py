"""A table for 0 to the largest position, read with the positions: −1 reads its last row.

Loses: encoding-values, encoding-edges, encoding-precision
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if positions.max() > 100_000:  # too large for a table
        phases = positions.unsqueeze(-1) * frequencies
        return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
    phases = torch.arange(1000, dtype=torch.float64).unsqueeze(-1) * frequencies
    table = torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
    return table[positions.long()]
