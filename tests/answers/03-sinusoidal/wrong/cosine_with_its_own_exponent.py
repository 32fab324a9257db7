"""The exponent of the cosine is (2i + 1)/d: the two components of a pair turn at different speeds.

Loses: encoding-values, encoding-edges, encoding-precision
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    phases = positions.unsqueeze(-1) / base ** (torch.arange(dim, dtype=torch.float64) / dim)
    codes = phases.sin()
    codes[..., 1::2] = phases[..., 1::2].cos()
    return codes
