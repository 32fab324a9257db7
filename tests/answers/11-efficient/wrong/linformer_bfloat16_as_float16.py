"""Computes bfloat16 in float16, which has a smaller range.

Loses: linformer-precision
"""

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    dtype = query.dtype
    if dtype == torch.bfloat16:
        query, key, value, key_projection, value_projection = (
            t.half() for t in (query, key, value, key_projection, value_projection)
        )
    w = torch.softmax(query @ (key_projection @ key).mT / query.shape[-1] ** 0.5, -1)
    return (w @ (value_projection @ value)).to(dtype), w.to(dtype)
