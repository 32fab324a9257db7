"""Keeps six digits of the share.

Loses: window-precision
"""

import math

import torch


# %% window-answer
def window(slopes, epsilon, bound):
    share = float(f"{epsilon:.6g}")
    return torch.ceil((2 * bound - math.log(share)) / slopes).long()
