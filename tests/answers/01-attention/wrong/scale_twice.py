"""Divides the query by √d_k, and then the scores once more.

Loses: attention-values, attention-edges, attention-precision
"""

import torch


# %% attention
def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1]
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
