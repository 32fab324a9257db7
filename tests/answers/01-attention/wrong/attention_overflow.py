"""Exponentials of the raw scores inside attention: nan for large scores.

Loses: attention-edges
"""

import math


# %% attention
def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
    return weights @ value, weights
