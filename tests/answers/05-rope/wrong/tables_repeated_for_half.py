"""Widens the tables for the half layout by repeating each column, and not all of them.

Loses: rope-half, rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    cos, sin = cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)
    if layout == "interleaved":
        beside = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    else:
        a, b = x.chunk(2, dim=-1)
        beside = torch.cat((-b, a), dim=-1)
    return (x * cos + beside * sin).to(x.dtype)
