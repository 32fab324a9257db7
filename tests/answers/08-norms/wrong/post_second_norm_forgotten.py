"""Normalizes the first sum only.

Loses: post-norm, post-norm-precision
"""


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + attention(x))
    return x + feed_forward(x)
