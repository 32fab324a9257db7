"""Knows one layout, half.

Loses: rope-interleaved, rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)
