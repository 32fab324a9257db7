"""The sine from the size of the angle and from its sign, which have no gradient at 0.

Loses: rotation
"""

import torch


# %% rotation-answer
def rotation(angle):
    size = angle.abs()
    c, s = size.cos(), angle.sign() * size.sin()
    return torch.stack((torch.stack((c, -s), -1), torch.stack((s, c), -1)), -2)
