"""Adds the negative of the query's position, and int32 has none of its smallest.

Loses: differences-precision
"""


# %% differences-answer
def relative_positions(q_positions, k_positions):
    return k_positions.long().unsqueeze(-2) + (-q_positions).long().unsqueeze(-1)
