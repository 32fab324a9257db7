"""Divides each row of a projection by its largest entry, and multiplies the mixtures by it again.

Loses: linformer
"""

import math

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    def mix(projection, tokens):
        largest = projection.abs().amax(dim=-1, keepdim=True)
        return (projection / largest) @ tokens * largest

    scores = query @ mix(key_projection, key).mT / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ mix(value_projection, value), weights
