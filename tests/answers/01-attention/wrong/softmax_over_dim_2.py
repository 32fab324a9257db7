"""Softmax over dimension 2: the last one only when there is a batch and no heads.

Loses: attention-values
"""

import math

import torch


# %% attention
def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=2)
    return weights @ value, weights
