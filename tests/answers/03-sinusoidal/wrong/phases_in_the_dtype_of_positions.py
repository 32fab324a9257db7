"""Takes the frequencies to the dtype of fractional positions: float16 has three digits.

Loses: encoding-edges, encoding-precision
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if positions.is_floating_point():
        frequencies = frequencies.to(positions.dtype)
    phases = (positions.unsqueeze(-1) * frequencies).double()
    return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
