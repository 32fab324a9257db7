"""Positions are subtracted in float64, which does not know all whole numbers beyond 2^53.

Loses: differences-precision
"""


# %% differences-answer
def relative_positions(q_positions, k_positions):
    return (k_positions.double().unsqueeze(-2) - q_positions.double().unsqueeze(-1)).long()
