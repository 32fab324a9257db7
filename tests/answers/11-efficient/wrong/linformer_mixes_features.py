"""Mixes components in place of tokens: the projections multiply from the right.

Loses: linformer
"""

import math

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    scores = query @ (key @ key_projection.mT).mT / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ (value @ value_projection.mT), weights
