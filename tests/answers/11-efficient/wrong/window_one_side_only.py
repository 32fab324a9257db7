"""Looks back only, whatever the flag says.

Loses: window-mask, window-mask-precision
"""


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    distance = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
    return (distance >= 0) & (distance <= window)
