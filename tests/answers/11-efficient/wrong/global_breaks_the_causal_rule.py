"""Global tokens look ahead although the mask is causal.

Loses: global-mask, global-mask-precision
"""

import torch


# %% global-answer
def add_global_tokens(mask, q_positions, k_positions, global_positions, causal):
    from_global = torch.isin(q_positions, global_positions).unsqueeze(-1)
    to_global = torch.isin(k_positions, global_positions).unsqueeze(-2)
    return mask | from_global | to_global
