"""int32 positions give int32 differences.

Loses: differences-precision
"""


# %% differences-answer
def relative_positions(q_positions, k_positions):
    return k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)
