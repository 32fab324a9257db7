"""Needs exactly one dimension in front.

Loses: split-heads
"""


# %% split-heads-answer
def split_heads(x, n_heads):
    batch, length, width = x.shape
    return x.view(batch, length, n_heads, width // n_heads).transpose(1, 2)
