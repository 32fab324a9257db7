"""Takes distances to float32 before they meet slopes of float64.

Loses: bias-precision
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    distance = offset.abs().unsqueeze(-3).float().to(slopes.dtype)
    return -slopes.view(-1, 1, 1) * distance
