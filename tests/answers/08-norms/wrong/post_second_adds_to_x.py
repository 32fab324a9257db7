"""The second residual starts from the x that entered.

Loses: post-norm, post-norm-precision
"""


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    y = norm_1(x + attention(x))
    return norm_2(x + feed_forward(y))
