"""Returns the mean of the weights over the heads: right for one head.

Loses: linformer
"""

import math

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    scores = query @ (key_projection @ key).mT / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    mean = weights.mean(dim=1, keepdim=True).expand_as(weights)
    return weights @ (value_projection @ value), mean
