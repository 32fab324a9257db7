"""Brings a 16-bit stream to float32 for the sums, and its functions get float32 too.

Loses: pre-norm
"""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    dtype = x.dtype
    x = x.float() if dtype.itemsize == 2 else x
    x = x + attention(norm_1(x))
    x = x + feed_forward(norm_2(x))
    return x.to(dtype)
