"""The transpose: it turns with the clock.

Loses: rotation, rotation-precision
"""

import torch


# %% rotation-answer
def rotation(angle):
    cos, sin = angle.cos(), angle.sin()
    rows = (torch.stack((cos, sin), dim=-1), torch.stack((-sin, cos), dim=-1))
    return torch.stack(rows, dim=-2)
