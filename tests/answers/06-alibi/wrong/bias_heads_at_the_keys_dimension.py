"""The place for the heads follows from the dimensions of the keys, which may be fewer.

Loses: bias-values
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    distance = offset.abs().unsqueeze(k_positions.dim() - 1).to(slopes.dtype)
    return -slopes.view(-1, 1, 1) * distance
