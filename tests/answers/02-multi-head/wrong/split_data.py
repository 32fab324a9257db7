"""Cuts the data behind the tensor: right numbers, no gradient.

Loses: split-heads
"""


# %% split-heads-answer
def split_heads(x, n_heads):
    return x.data.unflatten(-1, (n_heads, -1)).transpose(-3, -2)
