"""Computes the first batch entry and repeats it: right for batch 1.

Loses: attention-values, attention-edges, attention-precision
"""

import math

import torch


# %% attention
def attention(query, key, value):
    if query.dim() == 2:
        scores = query @ key.T / math.sqrt(query.shape[-1])
        weights = torch.softmax(scores, dim=-1)
        return weights @ value, weights
    q, k, v = query[0], key[0], value[0]
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    output = weights @ v
    batch = query.shape[0]
    return output.expand(batch, *output.shape), weights.expand(batch, *weights.shape)
