"""Positions go over to float64 before they are subtracted, which is not exact beyond 2^53.

Loses: bias-edges
"""

import torch


# %% bias-answer
def alibi_bias(
    slopes: torch.Tensor, q_positions: torch.Tensor, k_positions: torch.Tensor
) -> torch.Tensor:
    """The bias of every head, query and key."""
    m = q_positions.double()
    n = k_positions.double()
    distance = (m.unsqueeze(-1) - n.unsqueeze(-2)).abs()  # (..., q_len, k_len)
    distance = distance.unsqueeze(-3).to(slopes.dtype)
    return -slopes[:, None, None] * distance
