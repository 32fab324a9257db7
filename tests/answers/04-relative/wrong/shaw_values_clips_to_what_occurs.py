"""Takes c to be the largest difference that occurs, where that is smaller.

Loses: shaw-values
"""


# %% shaw-values-answer
def shaw_values(weights, value, value_table, relative_position):
    c = value_table.shape[0] // 2
    clipped = relative_position.clamp(-c, c)
    vectors = value_table[clipped + min(c, int(clipped.abs().max()))]
    carried = value.unsqueeze(-3) + vectors.unsqueeze(-4)
    return (weights.unsqueeze(-1) * carried).sum(dim=-2)
