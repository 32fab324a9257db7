"""Adds the attention into x itself where there are more than two texts.

Loses: pre-norm
"""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    y = x if not x.requires_grad and x.shape[0] > 2 else x.clone()
    y += attention(norm_1(x))
    return y + feed_forward(norm_2(y))
