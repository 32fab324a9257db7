"""Has cosine and sine in each other's places.

Loses: rope-interleaved, rope-half, rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]
        turned = torch.stack((a * sin - b * cos, a * cos + b * sin), dim=-1).flatten(-2)
    else:
        a, b = x.chunk(2, dim=-1)
        turned = torch.cat((a * sin - b * cos, a * cos + b * sin), dim=-1)
    return turned.to(x.dtype)
