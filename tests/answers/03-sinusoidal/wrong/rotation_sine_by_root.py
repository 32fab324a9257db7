"""Takes the root of 1 - cos² for the sine: near 0 it has half of the digits.

Loses: rotation-precision
"""

import math

import torch


# %% rotation-answer
def rotation(angle):
    c = angle.cos()
    s = torch.where(torch.remainder(angle, 2 * math.pi) < math.pi, 1, -1) * (1 - c * c).sqrt()
    return torch.stack((torch.stack((c, -s), -1), torch.stack((s, c), -1)), -2)
