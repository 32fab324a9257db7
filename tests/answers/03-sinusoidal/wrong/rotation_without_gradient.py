"""A new tensor of numbers: no gradient comes through.

Loses: rotation
"""

import math

import torch


# %% rotation-answer
def rotation(angle):
    rows = [
        [[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]] for a in angle.flatten().tolist()
    ]
    return torch.tensor(rows, dtype=angle.dtype).reshape(*angle.shape, 2, 2)
