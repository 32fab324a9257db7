"""Always float64, whatever the slopes are.

Loses: bias-edges
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    distance = offset.abs().unsqueeze(-3).double()
    return -slopes.view(-1, 1, 1) * distance
