"""Overwrites the first component and makes the second one from what it has become.

Loses: rope-interleaved, rope-half, rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]
    else:
        a, b = x.chunk(2, dim=-1)
    a = a * cos - b * sin
    b = a * sin + b * cos
    if layout == "interleaved":
        return torch.stack((a, b), dim=-1).flatten(-2).to(x.dtype)
    return torch.cat((a, b), dim=-1).to(x.dtype)
