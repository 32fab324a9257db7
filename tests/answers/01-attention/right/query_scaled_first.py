"""Scales the query before the product, in a new tensor."""

import math

import torch


# %% attention
def attention(query, key, value):
    weights = torch.softmax(query / math.sqrt(query.shape[-1]) @ key.mT, dim=-1)
    return torch.matmul(weights, value), weights
