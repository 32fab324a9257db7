"""Gives zeros where x is all 0: right values, and no gradient.

Loses: rope-interleaved, rope-half
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    if (x == 0).all():
        return torch.zeros_like(x)
    dim = -1 if layout == "interleaved" else -2
    a, b = x.unflatten(-1, (-1, 2) if dim == -1 else (2, -1)).unbind(dim)
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=dim)
    return turned.flatten(-2).to(x.dtype)
