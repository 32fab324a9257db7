"""Clamps the stream to the numbers of float16, as some models in half precision do.

Loses: pre-norm
"""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_1(x))
    return (x + feed_forward(norm_2(x))).clamp(-65504, 65504)
