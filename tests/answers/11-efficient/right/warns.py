"""Right, with a deprecation warning and words on stderr, which must cost nothing."""

import sys
import warnings


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    warnings.warn("sliding_window_mask is slow", UserWarning, stacklevel=1)
    print("sliding_window_mask was called", file=sys.stderr)
    distance = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
    return (distance <= window) & (distance >= (0 if causal else -window))
