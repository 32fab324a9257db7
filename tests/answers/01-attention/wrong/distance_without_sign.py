"""|n − m|: past and future look the same.

Loses: relative-position, relative-precision
"""


# %% relative-position-answer
def relative_position(q_positions, k_positions):
    return (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).abs()
