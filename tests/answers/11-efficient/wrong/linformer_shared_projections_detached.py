"""Gives every head a copy of the shared projections, made without gradients.

Loses: linformer
"""

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    if key_projection.dim() == 2:
        with torch.no_grad():
            key_projection = key_projection.expand(query.shape[1], -1, -1)
            value_projection = value_projection.expand(query.shape[1], -1, -1)
    w = torch.softmax(query @ (key_projection @ key).mT / query.shape[-1] ** 0.5, -1)
    return w @ (value_projection @ value), w
