"""The frequencies are float64, and the positions come through float32: off by one above 2^24.

Loses: encoding-precision
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    phases = positions.float().unsqueeze(-1) * frequencies
    return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
