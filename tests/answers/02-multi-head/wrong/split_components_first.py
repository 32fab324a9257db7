"""Takes the components for the outer of the two sizes: right where d is n_heads.

Loses: split-heads
"""


# %% split-heads-answer
def split_heads(x, n_heads):
    return x.unflatten(-1, (-1, n_heads)).transpose(-3, -2)
