"""Distances ahead are set to 0, as if a causal mask always followed.

Loses: bias-values, bias-edges, bias-precision
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    distance = offset.neg().clamp(min=0).unsqueeze(-3).to(slopes.dtype)
    return -slopes.view(-1, 1, 1) * distance
