"""The smallest number of float32 as minus infinity, also in float64, which goes further.

Loses: masked-precision
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    low = max(torch.finfo(torch.float32).min, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores.masked_fill(~mask, low), -1).masked_fill(~mask, 0.0)
    return weights @ value, weights
