"""Squeezes where there is one head, and with it every other dimension of size 1.

Loses: merge-heads
"""


# %% merge-heads-answer
def merge_heads(x):
    if x.shape[-3] == 1:
        return x.squeeze()
    return x.transpose(-3, -2).flatten(-2)
