"""Pairs are right in both layouts, and the results always become neighbours.

Loses: rope-half, rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    a, b = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else x.chunk(2, dim=-1)
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.flatten(-2).to(x.dtype)
