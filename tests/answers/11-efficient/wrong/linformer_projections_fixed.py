"""The projections are treated as constants: they would never be learned.

Loses: linformer
"""

import math

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    e, f = key_projection.detach(), value_projection.detach()
    scores = query @ (e @ key).mT / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ (f @ value), weights
