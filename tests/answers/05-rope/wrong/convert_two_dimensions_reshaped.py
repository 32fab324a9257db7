"""Views each head as (head_dim/2, 2) and forgets to exchange the two.

Loses: convert
"""


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    return rows.unflatten(0, (n_heads, -1, 2)).reshape(rows.shape)
