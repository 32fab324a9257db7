"""Computes and returns float64, whatever comes in.

Loses: linformer-precision
"""

import math

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    query, key, value = query.double(), key.double(), value.double()
    scores = query @ (key_projection.double() @ key).mT / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ (value_projection.double() @ value), weights
