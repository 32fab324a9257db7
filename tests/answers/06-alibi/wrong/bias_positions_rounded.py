"""Positions are rounded to the dtype of the slopes before they are subtracted.

Loses: bias-edges
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.to(slopes.dtype).unsqueeze(-2) - q_positions.to(slopes.dtype).unsqueeze(-1)
    distance = offset.abs().unsqueeze(-3)
    return -slopes.view(-1, 1, 1) * distance
