"""Divides by the square root of the number of keys.

Loses: attention-values, attention-edges, attention-precision
"""

import math

import torch


# %% attention
def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(key.shape[-2])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
