"""A global token sees all, but nobody sees it.

Loses: global-mask, global-mask-precision
"""

import torch


# %% global-answer
def add_global_tokens(mask, q_positions, k_positions, global_positions, causal):
    from_global = torch.isin(q_positions, global_positions).unsqueeze(-1)
    behind = k_positions.unsqueeze(-2) <= q_positions.unsqueeze(-1)
    added = from_global & behind if causal else from_global
    return mask | added
