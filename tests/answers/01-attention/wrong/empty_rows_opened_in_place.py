"""Lets queries that see nothing see everything at first, in the caller's own mask.

Loses: masked-edges
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    nothing = ~mask.any(dim=-1, keepdim=True)
    mask |= nothing
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1) * ~nothing
    return weights @ value, weights
