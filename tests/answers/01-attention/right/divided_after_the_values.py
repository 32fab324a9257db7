"""Multiplies by the values first, and divides by the sum of the exponentials afterwards."""

import math


# %% attention
def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    total = powers.sum(-1, keepdim=True)
    return powers @ value / total, powers / total


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask, -math.inf)
    scores = scores.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    powers = (scores - scores.amax(-1, keepdim=True)).exp().masked_fill(~mask, 0.0)
    total = powers.sum(-1, keepdim=True)
    total = total.masked_fill(total == 0, 1.0)
    return powers @ value / total, powers / total
