"""e^B in place of e^(2B).

Loses: window-test, window-precision
"""

import math

import torch


# %% window-answer
def window(slopes, epsilon, bound):
    return torch.ceil((math.log(1 / epsilon) + bound) / slopes).long()
