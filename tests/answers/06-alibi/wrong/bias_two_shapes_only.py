"""Knows positions with one leading dimension or with none.

Loses: bias-values
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    distance = offset.abs().to(slopes.dtype)
    if distance.dim() == 2:
        return -slopes[:, None, None] * distance
    return -slopes[None, :, None, None] * distance[:, None]
