"""Takes the distances in int32, to save memory.

Loses: window-mask-precision
"""


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    distance = q_positions.int().unsqueeze(-1) - k_positions.int().unsqueeze(-2)
    near = distance.abs() <= window
    return near & (distance >= 0) if causal else near
