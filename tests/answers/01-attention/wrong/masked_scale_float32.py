"""The masked attention divides by a float32 root.

Loses: masked-precision
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / torch.sqrt(torch.tensor(query.shape[-1]))
    nothing = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(nothing, 0.0)
    return weights @ value, weights
