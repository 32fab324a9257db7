"""Converts the positions to int32.

Loses: global-mask-precision
"""

import torch


# %% global-answer
def add_global_tokens(mask, q_positions, k_positions, global_positions, causal):
    m, n, special = q_positions.int(), k_positions.int(), global_positions.int()
    added = torch.isin(m, special).unsqueeze(-1) | torch.isin(n, special).unsqueeze(-2)
    behind = n.unsqueeze(-2) <= m.unsqueeze(-1)
    return mask | (added & behind if causal else added)
