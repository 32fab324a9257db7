"""In the half layout the tables are repeated, which fails where one column serves all pairs.

Loses: rope-half
"""

import torch


# %% rope-answer
def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, layout: str) -> torch.Tensor:
    """Turn each pair of components."""
    wide = torch.promote_types(x.dtype, cos.dtype)
    work, cos, sin = x.to(wide), cos.to(wide), sin.to(wide)
    if layout == "interleaved":
        a, b = work[..., 0::2], work[..., 1::2]
        turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    elif layout == "half":
        a, b = work.chunk(2, dim=-1)
        crossed = torch.cat((-b, a), dim=-1)
        turned = work * torch.cat((cos, cos), dim=-1) + crossed * torch.cat((sin, sin), dim=-1)
    else:
        raise ValueError(f"no such layout: {layout!r}")
    return turned.to(x.dtype)
