"""m − n in place of n − m.

Loses: relative-position, relative-precision
"""


# %% relative-position-answer
def relative_position(q_positions, k_positions):
    return q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
