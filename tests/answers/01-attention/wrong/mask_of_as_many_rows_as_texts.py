"""A mask of two dimensions with as many rows as there are texts is taken for one row per text.

Loses: masked-values
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask.dim() == 2 and scores.dim() > 2 and len(mask) == len(scores):
        mask = mask.view(len(mask), *[1] * (scores.dim() - 2), -1)
    nothing = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(nothing, 0.0)
    return weights @ value, weights
