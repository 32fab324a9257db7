"""Where all queries are 0, every mixture gets the same new weight, without a gradient.

Loses: linformer
"""

import math

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    mixed_key, mixed_value = key_projection @ key, value_projection @ value
    if query.any():
        weights = torch.softmax(query @ mixed_key.mT / math.sqrt(query.shape[-1]), dim=-1)
    else:
        rank = mixed_key.shape[-2]
        weights = query.new_full((*query.shape[:-1], rank), 1 / rank)
    return weights @ mixed_value, weights
