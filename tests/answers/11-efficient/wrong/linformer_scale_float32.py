"""The scale is a float32 number.

Loses: linformer-precision
"""

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    scale = torch.tensor(query.shape[-1]).sqrt()
    weights = torch.softmax(query @ (key_projection @ key).mT / scale, dim=-1)
    return weights @ (value_projection @ value), weights
