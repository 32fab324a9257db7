"""Right without leading dimensions alone.

Loses: relative-position
"""


# %% relative-position-answer
def relative_position(q_positions, k_positions):
    return k_positions[None, :] - q_positions[:, None]
