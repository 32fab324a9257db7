"""The feed-forward before the attention.

Loses: pre-norm, pre-norm-precision
"""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    x = x + feed_forward(norm_2(x))
    return x + attention(norm_1(x))
