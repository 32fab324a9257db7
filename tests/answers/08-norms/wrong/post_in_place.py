"""Adds in place, so that the caller's x changes.

Loses: post-norm
"""


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    x += attention(x)
    x = norm_1(x)
    return norm_2(x + feed_forward(x))
