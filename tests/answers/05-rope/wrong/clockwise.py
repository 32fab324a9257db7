"""Turns clockwise: all scores of a model trained so are the same, and the vectors are not.

Loses: rope-interleaved, rope-half, rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]
        turned = torch.stack((a * cos + b * sin, b * cos - a * sin), dim=-1).flatten(-2)
    else:
        a, b = x.chunk(2, dim=-1)
        turned = torch.cat((a * cos + b * sin, b * cos - a * sin), dim=-1)
    return turned.to(x.dtype)
