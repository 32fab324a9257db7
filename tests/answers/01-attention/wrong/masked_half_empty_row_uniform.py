"""Half precision goes its own way, with -1e9, and there an empty row has weights.

Loses: masked-edges
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if scores.dtype in (torch.float16, torch.bfloat16):
        weights = torch.softmax(scores.float().masked_fill(~mask, -1e9), -1).to(query.dtype)
    else:
        empty = ~mask.any(-1, keepdim=True)
        scores = scores.masked_fill(~mask, -math.inf).masked_fill(empty, 0)
        weights = torch.softmax(scores, -1).masked_fill(empty, 0)
    return weights @ value, weights
