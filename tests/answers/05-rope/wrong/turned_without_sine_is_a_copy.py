"""Takes sines that are all 0 for no turn, also where it is a half.

Loses: rope-interleaved, rope-half
"""

import torch


# %% rope-answer
def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, layout: str) -> torch.Tensor:
    if not sin.any():
        return x.clone()
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]
        turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    else:
        a, b = x.chunk(2, dim=-1)
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.to(x.dtype)
