"""Asks for distances below the window plus one, which int64 may not hold.

Loses: window-mask-precision
"""


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    d = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
    low = -1 if causal else -window - 1
    return (d > low) & (d < window + 1)
