"""-1e9 as minus infinity: a query that may see nothing sees all equally.

Loses: masked-edges, masked-precision
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1)
    return weights @ value, weights
