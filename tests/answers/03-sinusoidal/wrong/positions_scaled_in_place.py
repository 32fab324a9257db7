"""Works on the caller's tensor when it is float64 already: double() makes no copy then.

Loses: encoding-edges
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    positions = positions.double()
    codes = torch.empty(*positions.shape, dim, dtype=torch.float64)
    for i in range(dim // 2):
        codes[..., 2 * i], codes[..., 2 * i + 1] = positions.sin(), positions.cos()
        positions *= base ** (-2 / dim)
    return codes
