"""Normalizes what a sublayer returns: x + norm(F(x)).

Loses: pre-norm, pre-norm-precision
"""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    x = x + norm_1(attention(x))
    return x + norm_2(feed_forward(x))
