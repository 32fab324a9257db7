"""Rows are asked and columns ask.

Loses: relative-position, relative-precision
"""


# %% relative-position-answer
def relative_position(q_positions, k_positions):
    return k_positions.unsqueeze(-1) - q_positions.unsqueeze(-2)
