"""Everything in float32, cast at the end: far positions are wrong by whole radians.

Loses: encoding-precision
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    frequencies = base ** (-torch.arange(0, dim, 2) / dim)
    phases = positions.float().unsqueeze(-1) * frequencies
    return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2).double()
