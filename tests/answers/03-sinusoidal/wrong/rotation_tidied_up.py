"""Sets entries below 1e-9 to 0: for a tiny angle they are the sines, and at 0 they have a gradient.

Loses: rotation, rotation-precision
"""

import torch


# %% rotation-answer
def rotation(angle):
    cos, sin = angle.cos(), angle.sin()
    rows = torch.stack((cos, -sin, sin, cos), dim=-1).unflatten(-1, (2, 2))
    return rows * (rows.abs() > 1e-9)
