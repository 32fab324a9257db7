"""The weights of all keys are mixed after the softmax, in place of the keys before.

Loses: linformer, linformer-precision
"""

import math

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1) @ key_projection.mT
    return weights @ (value_projection @ value), weights
