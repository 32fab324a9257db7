"""Stacks one mask per global token, and crashes when there is none.

Loses: global-mask
"""

import torch


# %% global-answer
def add_global_tokens(mask, q_positions, k_positions, global_positions, causal):
    parts = []
    for place in global_positions.tolist():
        parts.append((q_positions == place).unsqueeze(-1) | (k_positions == place).unsqueeze(-2))
    added = torch.stack(parts).any(dim=0)
    behind = k_positions.unsqueeze(-2) <= q_positions.unsqueeze(-1)
    return mask | (added & behind if causal else added)
