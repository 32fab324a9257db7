"""The vectors are summed without their weights.

Loses: shaw-values, shaw-values-precision
"""


# %% shaw-values-answer
def shaw_values(weights, value, value_table, relative_position):
    c = value_table.shape[0] // 2
    vectors = value_table[relative_position.clamp(-c, c) + c]
    return weights @ value + vectors.sum(dim=-2).unsqueeze(-3)
