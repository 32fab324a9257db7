"""exp without taking the largest score off.

Loses: linformer-precision
"""

import math

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    scores = query @ (key_projection @ key).mT / math.sqrt(query.shape[-1])
    powers = torch.exp(scores)
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return weights @ (value_projection @ value), weights
