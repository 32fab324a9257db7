"""Knows one layout, interleaved.

Loses: rope-half, rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    a, b = x[..., 0::2], x[..., 1::2]
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.flatten(-2).to(x.dtype)
