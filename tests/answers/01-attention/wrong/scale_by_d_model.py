"""Divides by √d_model, with d_model = heads × d_k, in place of √d_k.

Loses: attention-values, attention-edges, attention-precision
"""

import math

import torch


# %% attention
def attention(query, key, value):
    heads = query.shape[-3] if query.dim() > 2 else 1
    scores = query @ key.transpose(-2, -1) / math.sqrt(heads * query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
