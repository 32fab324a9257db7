"""Returns int64, whatever the dtype of the positions.

Loses: relative-precision
"""


# %% relative-position-answer
def relative_position(q_positions, k_positions):
    return k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
