"""Uses the first norm for both sums.

Loses: post-norm, post-norm-precision
"""


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + attention(x))
    return norm_1(x + feed_forward(x))
