"""Takes tables of three dimensions for those of texts, whatever broadcasts.

Loses: rope-interleaved, rope-half
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    if x.dim() == 4 and cos.dim() == 3:
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    if layout == "half":
        a, b = x.chunk(2, dim=-1)
    else:
        a, b = x[..., 0::2], x[..., 1::2]
    first, second = a * cos - b * sin, a * sin + b * cos
    if layout == "half":
        return torch.cat((first, second), dim=-1).to(x.dtype)
    return torch.stack((first, second), dim=-1).flatten(-2).to(x.dtype)
