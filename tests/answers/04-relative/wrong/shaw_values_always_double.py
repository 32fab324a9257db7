"""Computes in float64 and leaves it so.

Loses: shaw-values
"""


# %% shaw-values-answer
def shaw_values(weights, value, value_table, relative_position):
    weights, value, value_table = weights.double(), value.double(), value_table.double()

    c = value_table.shape[0] // 2
    vectors = value_table[relative_position.clamp(-c, c) + c]
    carried = value.unsqueeze(-3) + vectors.unsqueeze(-4)
    return (weights.unsqueeze(-1) * carried).sum(dim=-2)
