"""Masks the exponentials and divides by the sum of what is left."""

import math


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    top = scores.masked_fill(~mask, -math.inf).amax(-1, keepdim=True)
    top = top.masked_fill(top == -math.inf, 0.0)
    powers = (scores - top).masked_fill(~mask, -math.inf).exp()
    total = powers.sum(-1, keepdim=True)
    weights = powers / total.masked_fill(total == 0, 1.0)
    return weights @ value, weights
