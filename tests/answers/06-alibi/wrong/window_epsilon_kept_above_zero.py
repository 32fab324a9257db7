"""Takes a share below a millionth for a millionth.

Loses: window-test, window-precision
"""

import math

import torch


# %% window-answer
def window(slopes, epsilon, bound):
    return torch.ceil((2 * bound - math.log(max(epsilon, 1e-6))) / slopes).long()
