"""-10000 as minus infinity: a real score may be lower.

Loses: masked-edges, masked-precision
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    nothing = ~mask.any(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(~mask, -1e4), dim=-1).masked_fill(nothing, 0.0)
    return weights @ value, weights
