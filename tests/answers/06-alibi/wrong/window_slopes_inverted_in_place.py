"""Turns the caller's slopes into tokens, in place.

Loses: window-test
"""

import math

import torch


# %% window-answer
def window(slopes, epsilon, bound):
    wanted = 2 * bound - math.log(epsilon)
    return torch.ceil(slopes.reciprocal_().mul_(wanted)).long()
