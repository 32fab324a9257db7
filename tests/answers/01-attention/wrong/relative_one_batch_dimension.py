"""At most one leading dimension.

Loses: relative-position
"""


# %% relative-position-answer
def relative_position(q_positions, k_positions):
    if q_positions.ndim == 1:
        return k_positions - q_positions[:, None]
    return k_positions[:, None, :] - q_positions[:, :, None]
