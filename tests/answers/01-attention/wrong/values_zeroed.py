"""Zeroes the values of keys that nobody may see: the weights stay wrong.

Loses: masked-values, masked-edges, masked-precision
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    seen = mask.any(dim=-2).unsqueeze(-1)
    return weights @ (value * seen), weights
