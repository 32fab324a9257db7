"""Takes the positions of the global tokens for row and column numbers.

Loses: global-mask, global-mask-precision
"""

import torch


# %% global-answer
def add_global_tokens(mask, q_positions, k_positions, global_positions, causal):
    added = torch.zeros_like(mask)
    rows = [i for i in global_positions.tolist() if i < mask.shape[1]]
    columns = [i for i in global_positions.tolist() if i < mask.shape[2]]
    added[:, rows] = True
    added[:, :, columns] = True
    behind = k_positions.unsqueeze(-2) <= q_positions.unsqueeze(-1)
    return mask | (added & behind if causal else added)
