"""Adds up a dot product one component after the other in float16: there, 32 + 1/64 is 32.

Loses: attention-precision
"""

import math

import torch


# %% attention
def attention(query, key, value):
    scores = 0
    for i in range(query.shape[-1]):
        scores = scores + query[..., :, None, i] * key[..., None, :, i]
    weights = torch.softmax(scores / math.sqrt(query.shape[-1]), dim=-1)
    return weights @ value, weights
