"""Everybody sees the global tokens, but they keep their window.

Loses: global-mask, global-mask-precision
"""

import torch


# %% global-answer
def add_global_tokens(mask, q_positions, k_positions, global_positions, causal):
    to_global = torch.isin(k_positions, global_positions).unsqueeze(-2)
    behind = k_positions.unsqueeze(-2) <= q_positions.unsqueeze(-1)
    added = to_global & behind if causal else to_global
    return mask | added
