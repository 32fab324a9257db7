"""Goes through the keys in blocks of 64, each with the largest score of its own.

Loses: attention-values
"""

import math

import torch


# %% attention
def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    blocks = [block - block.amax(-1, keepdim=True) for block in scores.split(64, dim=-1)]
    powers = torch.cat(blocks, dim=-1).exp()
    weights = powers / powers.sum(-1, keepdim=True)
    return weights @ value, weights
