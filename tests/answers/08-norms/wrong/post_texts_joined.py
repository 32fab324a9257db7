"""Lays all texts end to end for the attention: tokens see other texts.

Loses: post-norm, post-norm-precision
"""


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    joined = attention(x.flatten(0, 1).unsqueeze(0)).reshape(x.shape)
    x = norm_1(x + joined)
    return norm_2(x + feed_forward(x))
