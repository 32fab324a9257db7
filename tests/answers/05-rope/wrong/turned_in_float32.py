"""Computes in float32 and changes the dtype back: float64 loses its last digits.

Loses: rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    dtype, x, cos, sin = x.dtype, x.float(), cos.float(), sin.float()
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]
        turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    else:
        a, b = x.chunk(2, dim=-1)
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.to(dtype)
