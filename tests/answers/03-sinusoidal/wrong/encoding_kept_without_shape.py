"""Keeps codes by the numbers of the positions, and forgets their shape.

Loses: encoding-values
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0, known={}):
    key = tuple(positions.flatten().tolist()), dim, base
    if key not in known:
        frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        phases = positions.unsqueeze(-1) * frequencies
        known[key] = torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
    return known[key]
