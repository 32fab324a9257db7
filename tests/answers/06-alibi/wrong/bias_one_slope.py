"""One slope, the first, for all heads.

Loses: bias-values, bias-edges, bias-precision
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    distance = offset.abs().unsqueeze(-3).to(slopes.dtype)
    return -slopes[0].expand_as(slopes).view(-1, 1, 1) * distance
