"""Adds in float32, whatever the dtype of x.

Loses: pre-norm-precision
"""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    dtype = x.dtype
    x = (x.float() + attention(norm_1(x)).float()).to(dtype)
    return (x.float() + feed_forward(norm_2(x)).float()).to(dtype)
