"""No clip: far differences wrap around.

Loses: shaw-values, shaw-values-precision
"""


# %% shaw-values-answer
def shaw_values(weights, value, value_table, relative_position):
    c = value_table.shape[0] // 2
    vectors = value_table[(relative_position + c) % len(value_table)]
    carried = value.unsqueeze(-3) + vectors.unsqueeze(-4)
    return (weights.unsqueeze(-1) * carried).sum(dim=-2)
