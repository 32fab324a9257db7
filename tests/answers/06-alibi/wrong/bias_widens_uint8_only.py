"""Only uint8 is widened to int64, so that differences of int8 or int16 positions overflow.

Loses: bias-edges
"""

import torch


# %% bias-answer
def alibi_bias(
    slopes: torch.Tensor, q_positions: torch.Tensor, k_positions: torch.Tensor
) -> torch.Tensor:
    """The bias of every head, query and key."""
    m, n = q_positions, k_positions
    if m.dtype == torch.uint8:  # no negative numbers there
        m, n = m.long(), n.long()
    distance = (m.unsqueeze(-1) - n.unsqueeze(-2)).abs()  # (..., q_len, k_len)
    distance = distance.unsqueeze(-3).to(slopes.dtype)
    return -slopes[:, None, None] * distance
