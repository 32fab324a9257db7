"""A float32 input is not copied before the result is written into it.

Loses: rope-interleaved, rope-half
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    out = x.clone() if x.dtype == torch.float64 else x.float()
    a, b = (out[..., ::2], out[..., 1::2]) if layout == "interleaved" else out.chunk(2, dim=-1)
    first, second = a * cos - b * sin, a * sin + b * cos
    if x.requires_grad:
        parts = (first, second)
        if layout == "interleaved":
            return torch.stack(parts, dim=-1).flatten(-2).to(x.dtype)
        return torch.cat(parts, dim=-1).to(x.dtype)
    a.copy_(first)
    b.copy_(second)
    return out.to(x.dtype)
