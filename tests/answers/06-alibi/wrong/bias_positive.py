"""The bias is added with a plus sign: what is far is preferred.

Loses: bias-values, bias-edges, bias-precision
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    distance = offset.abs().unsqueeze(-3).to(slopes.dtype)
    return slopes.view(-1, 1, 1) * distance
