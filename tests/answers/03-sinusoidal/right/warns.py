"""Right, with a deprecation warning and words on stderr, which must cost nothing."""

import math
import sys
import warnings

import torch


# %% wavelengths-answer
def wavelengths(dim, base=10000.0):
    warnings.warn("wavelengths is slow", UserWarning, stacklevel=1)
    print("wavelengths was called", file=sys.stderr)
    return 2 * math.pi * base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
