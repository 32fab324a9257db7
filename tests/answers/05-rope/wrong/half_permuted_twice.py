"""Turns halves by way of neighbours, and permutes again to go back: right for four components only.

Loses: rope-half
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    d = x.shape[-1]
    order = torch.arange(d).unflatten(0, (2, -1)).T.flatten()
    if layout == "half":
        return apply_rope(x[..., order], cos, sin, "interleaved")[..., order]
    a, b = x[..., 0::2], x[..., 1::2]
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.flatten(-2).to(x.dtype)
