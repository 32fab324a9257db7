"""Knows positions with up to two leading dimensions.

Loses: bias-values
"""

import torch


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    letters = "ab"[: max(q_positions.dim(), k_positions.dim()) - 1]
    distance = (k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)).abs()
    distance = distance.to(slopes.dtype)
    return -torch.einsum(f"h,{letters}mn->{letters}hmn", slopes, distance)
