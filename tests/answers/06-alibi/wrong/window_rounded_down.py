"""Rounded down: the bound is still above the share.

Loses: window-test, window-precision
"""

import math

import torch


# %% window-answer
def window(slopes, epsilon, bound):
    return torch.floor((math.log(1 / epsilon) + 2 * bound) / slopes).long()
