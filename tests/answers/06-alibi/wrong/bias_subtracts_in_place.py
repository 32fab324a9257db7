"""Subtracts the first query's position from the caller's tensors.

Loses: bias-values
"""


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    start = q_positions[..., :1].clone()
    if q_positions.dim() == k_positions.dim() == 2:
        k_positions -= start  # only distances count
        q_positions -= start
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    distance = offset.abs().unsqueeze(-3).to(slopes.dtype)
    return -slopes.view(-1, 1, 1) * distance
