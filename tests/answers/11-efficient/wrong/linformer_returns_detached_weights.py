"""The weights that come back are detached; the output is right.

Loses: linformer
"""

import math

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    scores = query @ (key_projection @ key).mT / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ (value_projection @ value), weights.detach()
