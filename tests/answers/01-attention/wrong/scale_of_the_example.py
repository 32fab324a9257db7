"""The √3 of the visible examples in place of √d_k.

Loses: attention-values, attention-edges
"""

import math

import torch


# %% attention
def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(3)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
