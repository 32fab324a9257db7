"""Takes the first dimension of a mask of three for the heads, though it may be 1.

Loses: masked-values
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask.ndim == 3 and scores.ndim > 3:
        mask = torch.stack([mask[h] for h in range(scores.shape[-3])])
    sees_nothing = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(sees_nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(sees_nothing, 0.0)
    return weights @ value, weights
