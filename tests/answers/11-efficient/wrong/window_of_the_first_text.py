"""The positions of the first text are used for the whole batch.

Loses: window-mask
"""


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    distance = q_positions[:1].unsqueeze(-1) - k_positions[:1].unsqueeze(-2)
    distance = distance.expand(len(q_positions), -1, -1)
    near = distance.abs() <= window
    return near & (distance >= 0) if causal else near
