"""Indexes the scores with the mask, which must then have their full shape.

Loses: masked-values, masked-edges, masked-precision
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    nothing = ~mask.any(dim=-1, keepdim=True)
    scores = scores.clone()
    scores[~mask] = -math.inf
    scores = scores.masked_fill(nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(nothing, 0.0)
    return weights @ value, weights
