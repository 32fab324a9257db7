"""Subtracts the largest score in view or that of key 0, even where key 0 is hidden.

Loses: masked-edges
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    seen = scores.masked_fill(~mask, -math.inf)
    top = torch.maximum(seen.amax(-1, keepdim=True), scores[..., :1])
    powers = (seen - top).exp()
    total = powers.sum(-1, keepdim=True)
    weights = powers / total.masked_fill(total == 0, 1.0)
    return weights @ value, weights
