"""Clamps each sum to the numbers of float16, as some models in half precision do.

Loses: post-norm
"""


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1((x + attention(x)).clamp(-65504, 65504))
    return norm_2((x + feed_forward(x)).clamp(-65504, 65504))
