"""Converts positions to float64, which skips numbers above 2^53.

Loses: window-mask-precision
"""


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    distance = q_positions.double().unsqueeze(-1) - k_positions.double().unsqueeze(-2)
    if causal:
        return (distance >= 0) & (distance <= window)
    return distance.abs() <= window
