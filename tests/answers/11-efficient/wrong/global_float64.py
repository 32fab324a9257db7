"""Looks global positions up in float64, which skips numbers above 2^53.

Loses: global-mask-precision
"""

import torch


# %% global-answer
def add_global_tokens(mask, q_positions, k_positions, global_positions, causal):
    m, n = q_positions.unsqueeze(-1).double(), k_positions.unsqueeze(-2).double()
    chosen = global_positions.double()
    added = torch.isin(m, chosen) | torch.isin(n, chosen)
    if causal:
        added = added & (k_positions.unsqueeze(-2) <= q_positions.unsqueeze(-1))
    return mask | added
