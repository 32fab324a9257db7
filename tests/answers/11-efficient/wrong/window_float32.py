"""Takes the distances in float32, where neighbouring positions above 2^24 become equal.

Loses: window-mask-precision
"""


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    distance = q_positions.float().unsqueeze(-1) - k_positions.float().unsqueeze(-2)
    near = distance.abs() <= window
    return near & (distance >= 0) if causal else near
