"""Takes what is within a part in 10^12 of a whole number for that number.

Loses: window-precision
"""

import math

import torch


# %% window-answer
def window(slopes, epsilon, bound):
    solved = (2 * bound - math.log(epsilon)) / slopes
    nearest = solved.round()
    whole = torch.isclose(solved, nearest, rtol=1e-12, atol=1e-9)
    return torch.where(whole, nearest, solved.ceil()).long()
