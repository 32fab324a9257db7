"""Right, with a deprecation warning and words on stderr, which must cost nothing."""

import sys
import warnings


# %% differences-answer
def relative_positions(q_positions, k_positions):
    warnings.warn("relative_positions is slow", UserWarning, stacklevel=1)
    print("relative_positions was called", file=sys.stderr)
    return k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
