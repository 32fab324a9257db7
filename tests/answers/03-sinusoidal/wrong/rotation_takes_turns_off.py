"""rotation first takes whole turns off, each rounded to the dtype of the angle.

Loses: rotation-precision
"""

import math

import torch


# %% rotation-answer
def rotation(angle):
    angle = angle % (2 * math.pi)
    c, s = angle.cos(), angle.sin()
    return torch.stack((torch.stack((c, -s), -1), torch.stack((s, c), -1)), -2)
