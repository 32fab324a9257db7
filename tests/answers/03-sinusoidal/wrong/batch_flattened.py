"""A batch of positions comes back as one long table.

Loses: encoding-values, encoding-edges
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    phases = torch.outer(positions.double().flatten(), frequencies)
    return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
