"""Hidden scores become the smallest score - 100: the weights are tiny and not 0.

Loses: masked-values
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    nothing = ~mask.any(dim=-1, keepdim=True)
    low = scores.detach().amin(dim=-1, keepdim=True) - 100
    weights = torch.softmax(torch.where(mask, scores, low), dim=-1).masked_fill(nothing, 0.0)
    return weights @ value, weights
