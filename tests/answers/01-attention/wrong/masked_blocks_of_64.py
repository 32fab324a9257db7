"""Goes through the keys in blocks of 64, each with the largest score of its own.

Loses: masked-values
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask, -math.inf)
    lowest = torch.finfo(scores.dtype).min
    blocks = [b - b.amax(-1, keepdim=True).clamp(min=lowest) for b in scores.split(64, dim=-1)]
    powers = torch.cat(blocks, dim=-1).exp()
    total = powers.sum(-1, keepdim=True)
    weights = powers / total.masked_fill(total == 0, 1.0)
    return weights @ value, weights
