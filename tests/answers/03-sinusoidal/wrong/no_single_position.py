"""Goes through the positions one by one, and cannot take a single number.

Loses: encoding-edges
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    if positions.dim() > 1:
        return torch.stack([sinusoidal_encoding(row, dim, base) for row in positions])
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    rows = []
    for pos in range(len(positions)):
        phases = positions[pos] * frequencies
        rows.append(torch.stack((phases.sin(), phases.cos()), dim=-1).flatten())
    return torch.stack(rows)
