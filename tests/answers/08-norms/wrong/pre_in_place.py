"""Adds in place, so that the caller's x changes.

Loses: pre-norm
"""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    x += attention(norm_1(x))
    return x + feed_forward(norm_2(x))
