"""The two dimensions of the matrix come first: right for a single angle only.

Loses: rotation, rotation-precision
"""

import torch


# %% rotation-answer
def rotation(angle):
    cos, sin = angle.cos(), angle.sin()
    return torch.stack((torch.stack((cos, -sin)), torch.stack((sin, cos))))
