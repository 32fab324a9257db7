"""A bfloat16 input is turned in float32, also where the tables are float64.

Loses: rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    wide = torch.float32 if x.dtype == torch.bfloat16 else torch.float64
    y, cos, sin = x.to(wide), cos.to(wide), sin.to(wide)
    a, b = (y[..., ::2], y[..., 1::2]) if layout == "interleaved" else y.chunk(2, -1)
    p, q = a * cos - b * sin, a * sin + b * cos
    out = torch.stack((p, q), -1).flatten(-2) if layout == "interleaved" else torch.cat((p, q), -1)
    return out.to(x.dtype)
