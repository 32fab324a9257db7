"""Cuts a float32 copy: large integers and the last digits of float64 are lost.

Loses: split-heads
"""


# %% split-heads-answer
def split_heads(x, n_heads):
    return x.float().unflatten(-1, (n_heads, -1)).transpose(-3, -2).to(x.dtype)
