"""Computes sine and cosine in float32, and converts the matrix back.

Loses: rotation-precision
"""

import torch


# %% rotation-answer
def rotation(angle):
    cos, sin = angle.float().cos(), angle.float().sin()
    rows = (torch.stack((cos, -sin), dim=-1), torch.stack((sin, cos), dim=-1))
    return torch.stack(rows, dim=-2).to(angle.dtype)
