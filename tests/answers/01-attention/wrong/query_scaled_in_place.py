"""Scales the caller's query in place: a second call gives something else.

Loses: attention-edges
"""

import math

import torch


# %% attention
def attention(query, key, value):
    query /= math.sqrt(query.shape[-1])
    weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
    return weights @ value, weights
