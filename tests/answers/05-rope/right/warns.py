"""Right, with a warning and words on stderr, which must cost nothing."""

import sys
import warnings

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    warnings.warn("powers are slow", UserWarning, stacklevel=1)
    print("rope_frequencies was called", file=sys.stderr)
    return base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
