"""Pre-norm in place of post-norm.

Loses: post-norm, post-norm-precision
"""


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))
