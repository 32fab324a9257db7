"""Detaches half precision when it converts it to float32.

Loses: linformer-precision
"""

import torch


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    dtype = query.dtype
    if dtype in (torch.float16, torch.bfloat16):
        query, key, value, key_projection, value_projection = (
            t.detach().float() for t in (query, key, value, key_projection, value_projection)
        )
    w = torch.softmax(query @ (key_projection @ key).mT / query.shape[-1] ** 0.5, -1)
    return (w @ (value_projection @ value)).to(dtype), w.to(dtype)
