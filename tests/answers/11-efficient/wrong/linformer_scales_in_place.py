"""Scales the queries of the caller.

Loses: linformer
"""

import math

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    query /= math.sqrt(query.shape[-1])
    weights = torch.softmax(query @ (key_projection @ key).mT, dim=-1)
    return weights @ (value_projection @ value), weights
