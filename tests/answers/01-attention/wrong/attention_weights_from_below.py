"""No weight falls below 1e-9, "for numerical stability".

Loses: attention-edges
"""

import math

import torch


# %% attention
def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1).clamp(min=1e-9)
    return weights @ value, weights
