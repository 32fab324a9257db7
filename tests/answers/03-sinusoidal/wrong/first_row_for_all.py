"""Every batch entry gets the codes of the first one.

Loses: encoding-values
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if positions.dim() > 1:
        positions = positions[:1].expand(positions.shape)
    phases = positions.unsqueeze(-1) * frequencies
    return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
