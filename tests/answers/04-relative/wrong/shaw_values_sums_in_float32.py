"""The weights of equal differences are summed in a tensor of zeros, which is float32.

Loses: shaw-values-precision
"""

import torch


# %% shaw-values-answer
def shaw_values(weights, value, value_table, relative_position):
    c = value_table.shape[0] // 2
    rows = (relative_position.clamp(-c, c) + c).unsqueeze(-3).expand(weights.shape)
    zeros = torch.zeros(*weights.shape[:-1], 2 * c + 1)
    per_offset = zeros.scatter_add(-1, rows, weights.float())
    return weights @ value + per_offset.to(value_table.dtype) @ value_table
