"""The weights are detached: queries, keys and E get no gradient.

Loses: linformer
"""

import math

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    scores = query @ (key_projection @ key).mT / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1).detach()
    return weights @ (value_projection @ value), weights
