"""The window counts the query itself: one key less on each side.

Loses: window-mask, window-mask-precision
"""


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    distance = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
    near = distance.abs() < max(window, 1)
    return near & (distance >= 0) if causal else near
