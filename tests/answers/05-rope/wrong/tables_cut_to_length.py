"""Tables are cut to the length of x in their first dimension, which may be a batch.

Loses: rope-interleaved, rope-half
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    if x.dim() > 1 and cos.dim() > 1:
        cos, sin = cos[: x.shape[-2]], sin[: x.shape[-2]]
    wide = torch.promote_types(x.dtype, cos.dtype)
    y, cos, sin = x.to(wide), cos.to(wide), sin.to(wide)
    if layout == "interleaved":
        a, b = y[..., 0::2], y[..., 1::2]
    else:
        a, b = y.chunk(2, dim=-1)
    a, b = a * cos - b * sin, a * sin + b * cos
    if layout == "interleaved":
        turned = torch.stack((a, b), dim=-1).flatten(-2)
    else:
        turned = torch.cat((a, b), dim=-1)
    return turned.to(x.dtype)
