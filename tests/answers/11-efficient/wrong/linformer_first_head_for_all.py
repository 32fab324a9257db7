"""The projection of the first head is used for all heads.

Loses: linformer
"""

import math

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    if key_projection.dim() == 3:
        key_projection, value_projection = key_projection[0], value_projection[0]
    scores = query @ (key_projection @ key).mT / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ (value_projection @ value), weights
