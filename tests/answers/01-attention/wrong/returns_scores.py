"""Returns the scores in place of the weights.

Loses: attention-values, attention-precision
"""

import math

import torch


# %% attention
def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, scores
