"""Wants tables with all the dimensions of x, and repeats nothing.

Loses: rope-interleaved, rope-half, rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    turn = torch.complex(cos, sin).reshape(*x.shape[:-1], -1)
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]
        z = torch.complex(a.to(cos.dtype), b.to(cos.dtype)) * turn
        return torch.stack((z.real, z.imag), dim=-1).flatten(-2).to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    z = torch.complex(a.to(cos.dtype), b.to(cos.dtype)) * turn
    return torch.cat((z.real, z.imag), dim=-1).to(x.dtype)
