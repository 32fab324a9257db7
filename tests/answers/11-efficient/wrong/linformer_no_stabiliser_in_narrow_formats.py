"""Subtracts the largest score in float64 only.

Loses: linformer-precision
"""

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    s = query @ (key_projection @ key).mT / query.shape[-1] ** 0.5
    if s.dtype == torch.float64:
        s = s - s.amax(-1, keepdim=True)
    e = s.exp()
    w = e / e.sum(-1, keepdim=True)
    return w @ (value_projection @ value), w
