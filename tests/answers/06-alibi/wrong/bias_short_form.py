"""The slope times the key's position: the form for causal masks, and not the bias.

Loses: bias-values, bias-edges, bias-precision
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    shape = (*q_positions.shape, k_positions.shape[-1])
    position = k_positions.unsqueeze(-2).expand(shape).unsqueeze(-3).to(slopes.dtype)
    return slopes.view(-1, 1, 1) * position
