"""Computes in float32 and casts back: float64 loses its last digits.

Loses: attention-precision
"""

import math

import torch


# %% attention
def attention(query, key, value):
    q, k, v = query.float(), key.float(), value.float()
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return (weights @ v).to(query.dtype), weights.to(query.dtype)
