"""Takes the root of 1 - cos² for the sine: near 0 half of the digits, at 0 a gradient of nan.

Loses: rotation, rotation-precision
"""

import math

import torch


# %% rotation-answer
def rotation(angle):
    c = angle.cos()
    s = torch.where(torch.remainder(angle, 2 * math.pi) < math.pi, 1, -1) * (1 - c * c).sqrt()
    return torch.stack((torch.stack((c, -s), -1), torch.stack((s, c), -1)), -2)
