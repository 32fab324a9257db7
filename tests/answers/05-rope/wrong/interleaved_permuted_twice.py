"""Interleaves by way of the halves, and permutes again to go back: right for four components only.

Loses: rope-interleaved
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    d = x.shape[-1]
    order = torch.cat((torch.arange(0, d, 2), torch.arange(1, d, 2)))
    if layout == "interleaved":
        return apply_rope(x[..., order], cos, sin, "half")[..., order]
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)
