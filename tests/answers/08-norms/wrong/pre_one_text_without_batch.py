"""Gives the functions a single text without its batch dimension.

Loses: pre-norm
"""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    alone = len(x) == 1 and x.shape[1] > 1
    x = x[0] if alone else x
    x = x + attention(norm_1(x))
    x = x + feed_forward(norm_2(x))
    return x[None] if alone else x
