"""float64 comes back, whatever came in.

Loses: rotation, rotation-precision
"""

import torch


# %% rotation-answer
def rotation(angle):
    cos, sin = angle.double().cos(), angle.double().sin()
    rows = (torch.stack((cos, -sin), dim=-1), torch.stack((sin, cos), dim=-1))
    return torch.stack(rows, dim=-2)
