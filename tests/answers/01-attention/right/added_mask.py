"""Adds 0 or -inf to the scores, and lets empty rows see everything first."""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    some = mask.any(-1, keepdim=True)
    bias = torch.zeros(mask.shape, dtype=scores.dtype)
    bias = bias.masked_fill(~(mask | ~some), -math.inf)
    weights = torch.softmax(scores + bias, dim=-1) * some
    return weights @ value, weights
