"""c is added before clipping, which goes round at the end of int64.

Loses: shaw-values
"""


# %% shaw-values-answer
def shaw_values(weights, value, value_table, relative_position):
    c = value_table.shape[0] // 2
    rows = (relative_position + c).clamp(0, 2 * c)
    vectors = value_table[rows]
    if rows.dim() == 3:
        vectors = vectors.unsqueeze(1)
    return weights @ value + (weights.unsqueeze(-1) * vectors).sum(-2)
