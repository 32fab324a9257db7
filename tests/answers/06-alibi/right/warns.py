"""Right, with a deprecation warning and words on stderr, which must cost nothing."""

import math
import sys
import warnings

import torch


# %% window-answer
def window(slopes, epsilon, bound):
    warnings.warn("window is slow", UserWarning, stacklevel=1)
    print("window was called", file=sys.stderr)
    return torch.ceil((2 * bound - math.log(epsilon)) / slopes).long()
