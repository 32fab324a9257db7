"""Gives the feed-forward the x that entered, beside the attention.

Loses: pre-norm, pre-norm-precision
"""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    return x + attention(norm_1(x)) + feed_forward(norm_2(x))
