"""A single angle is read with .item() and goes through math, so no gradient flows to it.

Loses: rotation
"""

import math

import torch


# %% rotation-answer
def rotation(angle: torch.Tensor) -> torch.Tensor:
    """The matrix that turns a column of the plane against the clock."""
    if angle.dim() == 0:
        c, s = math.cos(angle.item()), math.sin(angle.item())
        return torch.tensor([[c, -s], [s, c]], dtype=angle.dtype)
    cos, sin = angle.cos(), angle.sin()
    upper = torch.stack((cos, -sin), dim=-1)
    lower = torch.stack((sin, cos), dim=-1)
    return torch.stack((upper, lower), dim=-2)
