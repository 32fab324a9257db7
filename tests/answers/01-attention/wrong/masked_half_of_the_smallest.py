"""Half of the dtype's smallest number as minus infinity: in float16 that is -32752.

Loses: masked-edges
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min / 2)
    weights = torch.softmax(scores, -1).masked_fill(~mask, 0.0)
    return weights @ value, weights
