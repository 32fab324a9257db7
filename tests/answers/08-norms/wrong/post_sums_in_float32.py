"""Adds in float32, whatever the dtype of x.

Loses: post-norm-precision
"""


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    dtype = x.dtype
    x = norm_1((x.float() + attention(x).float()).to(dtype))
    return norm_2((x.float() + feed_forward(x).float()).to(dtype))
