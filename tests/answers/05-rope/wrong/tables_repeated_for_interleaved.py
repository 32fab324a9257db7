"""Widens the tables for interleaved pairs by repeating all columns, and not each of them.

Loses: rope-interleaved, rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    cos, sin = torch.cat((cos, cos), dim=-1), torch.cat((sin, sin), dim=-1)
    if layout == "interleaved":
        beside = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    else:
        a, b = x.chunk(2, dim=-1)
        beside = torch.cat((-b, a), dim=-1)
    return (x * cos + beside * sin).to(x.dtype)
