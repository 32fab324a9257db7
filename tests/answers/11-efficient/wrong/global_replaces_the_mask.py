"""The old mask is forgotten.

Loses: global-mask, global-mask-precision
"""

import torch


# %% global-answer
def add_global_tokens(mask, q_positions, k_positions, global_positions, causal):
    from_global = torch.isin(q_positions, global_positions).unsqueeze(-1)
    to_global = torch.isin(k_positions, global_positions).unsqueeze(-2)
    behind = k_positions.unsqueeze(-2) <= q_positions.unsqueeze(-1)
    eye = q_positions.unsqueeze(-1) == k_positions.unsqueeze(-2)
    added = from_global | to_global | eye
    return added & behind if causal else added
