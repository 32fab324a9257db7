"""Post-norm in place of pre-norm.

Loses: pre-norm, pre-norm-precision
"""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + attention(x))
    return norm_2(x + feed_forward(x))
