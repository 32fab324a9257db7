"""Swaps the halves and forgets the minus: a mirror image in place of a turn.

Loses: rope-half, rope-precision
"""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]
        turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    else:
        both, other = torch.cat((cos, cos), dim=-1), torch.cat((sin, sin), dim=-1)
        turned = x * both + x.roll(x.shape[-1] // 2, dims=-1) * other
    return turned.to(x.dtype)
