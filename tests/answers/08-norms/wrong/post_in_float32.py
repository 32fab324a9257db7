"""Brings a 16-bit stream to float32 for the sums, and its functions get float32 too.

Loses: post-norm
"""


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    dtype = x.dtype
    x = x.float() if dtype.itemsize == 2 else x
    x = norm_1(x + attention(x))
    x = norm_2(x + feed_forward(x))
    return x.to(dtype)
