"""Takes the first batch entry's mask for all.

Loses: masked-values, masked-edges
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    while mask.dim() > 2:
        mask = mask[0]
    nothing = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(nothing, 0.0)
    return weights @ value, weights
