"""Works in float32 where positions are float16 or float32.

Loses: encoding-precision
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions, dim, base=10000.0):
    wide = torch.promote_types(positions.dtype, torch.float32)
    if not positions.is_floating_point():
        wide = torch.float64
    omega = (base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)).to(wide)
    phases = positions.to(wide).unsqueeze(-1) * omega
    return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2).double()
