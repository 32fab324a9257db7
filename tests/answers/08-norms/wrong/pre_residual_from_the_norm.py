"""Adds to the normalized x in place of x.

Loses: pre-norm, pre-norm-precision
"""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    y = norm_1(x)
    x = y + attention(y)
    y = norm_2(x)
    return y + feed_forward(y)
