"""Transposes the queries in place of the keys: the shapes fit for square sizes alone.

Loses: attention-values, attention-edges, attention-precision
"""

import math

import torch


# %% attention
def attention(query, key, value):
    scores = query.transpose(-2, -1) @ key / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
