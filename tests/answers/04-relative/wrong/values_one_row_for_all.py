"""With c = 0 the only vector is added as it is: the weights get no gradient from it.

Loses: shaw-values
"""


# %% shaw-values-answer
def shaw_values(weights, value, value_table, relative_position):
    c = value_table.shape[0] // 2
    if c == 0:
        return weights @ value + value_table[0]
    rows = relative_position.clamp(-c, c) + c
    vectors = value_table[rows]
    if rows.dim() == 3:
        vectors = vectors.unsqueeze(1)
    return weights @ value + (weights.unsqueeze(-1) * vectors).sum(-2)
