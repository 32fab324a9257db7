"""Right, with a warning and words on stderr, which must cost nothing."""

import sys
import warnings


# %% shift-answer
def teacher_forcing(tokens, real):
    warnings.warn("teacher_forcing is slow", UserWarning, stacklevel=1)
    print("teacher_forcing was called", file=sys.stderr)
    return tokens[:, :-1], tokens[:, 1:], real[:, 1:]
