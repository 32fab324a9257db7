"""Rounds the tables to the dtype of x before it turns.

Loses: rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
