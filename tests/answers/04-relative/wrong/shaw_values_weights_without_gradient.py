"""No gradient reaches the weights through the positions.

Loses: shaw-values, shaw-values-precision
"""


# %% shaw-values-answer
def shaw_values(weights, value, value_table, relative_position):
    c = value_table.shape[0] // 2
    vectors = value_table[relative_position.clamp(-c, c) + c]
    position = (weights.detach().unsqueeze(-1) * vectors.unsqueeze(-4)).sum(dim=-2)
    return weights @ value + position
