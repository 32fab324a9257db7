"""Widens the difference and not the positions: in int32 it may be too large.

Loses: differences-precision
"""


# %% differences-answer
def relative_positions(q_positions, k_positions):
    return (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).long()
