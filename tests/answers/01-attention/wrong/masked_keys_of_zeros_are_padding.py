"""Takes keys of zeros for padding, and hides them.

Loses: masked-values, masked-edges, masked-precision
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    mask = mask & key.any(dim=-1).unsqueeze(-2)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    sees_nothing = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(sees_nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(sees_nothing, 0.0)
    return weights @ value, weights
