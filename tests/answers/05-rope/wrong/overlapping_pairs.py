"""Takes components i and i + 1 for pair i, so that pairs overlap, where it should interleave.

Loses: rope-interleaved, rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    if layout == "interleaved":
        d = x.shape[-1]
        a, b = x[..., : d // 2], x[..., 1 : d // 2 + 1]
        turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    else:
        a, b = x.chunk(2, dim=-1)
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.to(x.dtype)
