"""Subtracts in the dtype of the positions: uint8 wraps around.

Loses: bias-edges
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)
    distance = offset.abs().unsqueeze(-3).to(slopes.dtype)
    return -slopes.view(-1, 1, 1) * distance
