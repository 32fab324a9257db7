"""A window of 0 is taken for no window at all.

Loses: window-mask
"""


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    distance = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
    near = distance >= 0 if causal else distance == distance
    return near & (distance.abs() <= window) if window else near
