"""Copies x into a tensor of zeros, which is float32, and casts it back.

Loses: post-norm-precision
"""

import torch


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    stream = torch.zeros(x.shape)
    stream += x
    stream = stream.to(x.dtype)
    stream = norm_1(stream + attention(stream))
    return norm_2(stream + feed_forward(stream))
