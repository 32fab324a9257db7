"""Lays all texts end to end for the attention: tokens see other texts.

Loses: pre-norm, pre-norm-precision
"""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    joined = norm_1(x).flatten(0, 1).unsqueeze(0)
    x = x + attention(joined).reshape(x.shape)
    return x + feed_forward(norm_2(x))
