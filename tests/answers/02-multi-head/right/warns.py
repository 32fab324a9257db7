"""Right, with a warning and words on stderr, which must cost nothing."""

import sys
import warnings


# %% split-heads-answer
def split_heads(x, n_heads):
    warnings.warn("cutting is slow", UserWarning, stacklevel=1)
    print("split_heads was called", file=sys.stderr)
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)
