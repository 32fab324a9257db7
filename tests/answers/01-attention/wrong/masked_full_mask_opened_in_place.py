"""Opens empty rows in an expanded mask, which is the argument itself if it is full.

Loses: masked-edges
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    full = mask.expand(*query.shape[:-1], key.shape[-2])
    if mask.dim() < query.dim() or mask.shape != full.shape:
        full = full.clone()
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    some = full.any(-1, keepdim=True)
    full |= ~some
    weights = torch.softmax(scores.masked_fill(~full, -math.inf), -1) * some
    return weights @ value, weights
