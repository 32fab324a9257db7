"""Solves the equation in float32: next to a whole number it is one token off.

Loses: window-precision
"""

import math

import torch


# %% window-answer
def window(slopes, epsilon, bound):
    return torch.ceil((2 * bound - math.log(epsilon)) / slopes.float()).long()
