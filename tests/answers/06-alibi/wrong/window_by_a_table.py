"""Tries distances up to 100 000, and finds no window beyond.

Loses: window-test, window-precision
"""

import math

import torch


# %% window-answer
def window(slopes, epsilon, bound):
    d = torch.arange(100_000, dtype=torch.float64)
    small = 2 * bound - slopes.unsqueeze(-1) * d <= math.log(epsilon)
    return small.long().argmax(-1)
