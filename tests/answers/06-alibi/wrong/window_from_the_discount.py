"""Takes the logarithm of γ, which is 0 for a steep slope.

Loses: window-test, window-precision
"""

import math

import torch


# %% window-answer
def window(slopes, epsilon, bound):
    gamma = torch.exp(-slopes)
    return torch.ceil((math.log(epsilon) - 2 * bound) / torch.log(gamma)).long()
