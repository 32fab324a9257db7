"""-1e9 as minus infinity in float32, where scores may be lower.

Loses: masked-edges
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    fill = -1e9 if scores.dtype == torch.float32 else -math.inf
    empty = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask, fill).masked_fill(empty, 0)
    weights = torch.softmax(scores, -1).masked_fill(~mask, 0.0)
    return weights @ value, weights
