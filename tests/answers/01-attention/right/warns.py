"""Right, with a deprecation warning and words on stderr, which must cost nothing."""

import sys
import warnings

import torch


# %% softmax
def softmax(scores, dim):
    warnings.warn("softmax is slow", UserWarning, stacklevel=1)
    print("softmax was called", file=sys.stderr)
    return torch.softmax(scores, dim)
