"""Takes the positions of the first text for the whole batch.

Loses: bias-values
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    if q_positions.dim() > 1 and k_positions.dim() > 1:
        q_positions = q_positions[:1].expand_as(q_positions)
        k_positions = k_positions[:1].expand_as(k_positions)
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    distance = offset.abs().unsqueeze(-3).to(slopes.dtype)
    return -slopes.view(-1, 1, 1) * distance
