"""One line that works the first half out twice.

Loses: post-norm
"""


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(norm_1(x + attention(x)) + feed_forward(norm_1(x + attention(x))))
