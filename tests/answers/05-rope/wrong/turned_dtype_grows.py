"""Returns float32 for a bfloat16 input.

Loses: rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
