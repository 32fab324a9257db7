"""Normalizes what a sublayer returns, before the sum.

Loses: post-norm, post-norm-precision
"""


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    x = x + norm_1(attention(x))
    return x + norm_2(feed_forward(x))
