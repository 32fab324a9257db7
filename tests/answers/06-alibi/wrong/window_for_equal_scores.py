"""The scores are taken for equal.

Loses: window-test, window-precision
"""

import math

import torch


# %% window-answer
def window(slopes, epsilon, bound):
    return torch.ceil(math.log(1 / epsilon) / slopes).long()
