"""Gives each head the same share of the sum: right in total only.

Loses: head-contributions, head-contributions-precision
"""


# %% head-contributions-answer
def head_contributions(heads, w_o):
    n_heads = heads.shape[1]
    total = heads.transpose(1, 2).flatten(2) @ w_o
    return (total / n_heads).unsqueeze(1).repeat(1, n_heads, 1, 1)
