"""The heads stand in front of the batch: right without leading dimensions.

Loses: bias-values
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    distance = offset.abs().to(slopes.dtype)
    return -slopes.view(-1, *[1] * distance.dim()) * distance
