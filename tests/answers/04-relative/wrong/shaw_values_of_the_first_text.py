"""All texts get the differences of the first one.

Loses: shaw-values, shaw-values-precision
"""


# %% shaw-values-answer
def shaw_values(weights, value, value_table, relative_position):
    if relative_position.dim() == 3:
        relative_position = relative_position[0]

    c = value_table.shape[0] // 2
    vectors = value_table[relative_position.clamp(-c, c) + c]
    carried = value.unsqueeze(-3) + vectors.unsqueeze(-4)
    return (weights.unsqueeze(-1) * carried).sum(dim=-2)
