"""Widens to int32 at least, so that differences of int32 positions overflow.

Loses: bias-edges
"""

import torch


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    wide = torch.promote_types(q_positions.dtype, torch.int32)
    offset = k_positions.to(wide).unsqueeze(-2) - q_positions.to(wide).unsqueeze(-1)
    return -slopes.view(-1, 1, 1) * offset.abs().unsqueeze(-3).to(slopes.dtype)
