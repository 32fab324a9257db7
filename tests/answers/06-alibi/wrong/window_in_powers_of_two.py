"""The logarithm to base 2, as for a half-distance without ln 2.

Loses: window-test, window-precision
"""

import math

import torch


# %% window-answer
def window(slopes, epsilon, bound):
    return torch.ceil((math.log2(1 / epsilon) + 2 * bound) / slopes).long()
