"""apply_rope goes through length and angle, with the gradient nan at a pair (0, 0).

Loses: rope-interleaved, rope-half
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    wide, cos, sin = x.double(), cos.double(), sin.double()
    if layout == "interleaved":
        a, b = wide[..., 0::2], wide[..., 1::2]
    else:
        a, b = wide.chunk(2, dim=-1)
    radius = torch.hypot(a, b) * torch.hypot(cos, sin)
    angle = torch.atan2(b, a) + torch.atan2(sin, cos)
    a, b = radius * angle.cos(), radius * angle.sin()
    if layout == "interleaved":
        return torch.stack((a, b), dim=-1).flatten(-2).to(x.dtype)
    return torch.cat((a, b), dim=-1).to(x.dtype)
