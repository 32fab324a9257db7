"""Where all texts share the differences, no gradient reaches the weights through the positions.

Loses: shaw-values
"""

import torch


# %% shaw-values-answer
def shaw_values(weights, value, value_table, relative_position):
    c = value_table.shape[0] // 2
    rows = relative_position.clamp(-c, c) + c
    if rows.dim() == 2:
        pos = torch.einsum("bhmn,mnd->bhmd", weights.detach(), value_table[rows])
    else:
        pos = torch.einsum("bhmn,bmnd->bhmd", weights, value_table[rows])
    return weights @ value + pos
