"""Pairs are right in both layouts, and the results are always laid one half behind the other.

Loses: rope-interleaved, rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    a, b = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)
