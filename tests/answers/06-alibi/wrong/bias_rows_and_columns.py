"""Counts rows and columns and never looks at the positions.

Loses: bias-values, bias-edges, bias-precision
"""

import torch


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    q_len, k_len = q_positions.shape[-1], k_positions.shape[-1]
    offset = torch.arange(k_len) - torch.arange(q_len).unsqueeze(-1)
    offset = offset.expand(*q_positions.shape[:-1], q_len, k_len)
    distance = offset.abs().unsqueeze(-3).to(slopes.dtype)
    return -slopes.view(-1, 1, 1) * distance
