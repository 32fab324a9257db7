"""n − m without the absolute value: keys that come later are rewarded.

Loses: bias-values, bias-edges, bias-precision
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    offset = offset.unsqueeze(-3).to(slopes.dtype)
    return slopes.view(-1, 1, 1) * offset
