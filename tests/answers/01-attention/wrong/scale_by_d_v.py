"""Divides by the square root of the size of a value.

Loses: attention-values, attention-edges, attention-precision
"""

import math

import torch


# %% attention
def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(value.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
