"""Detaches half precision when it converts it to float32.

Loses: piece-precision
"""

import torch


# %% piece-answer
def read_piece(query_features, key_features, value, s, z):
    dtype = value.dtype
    if dtype in (torch.float16, torch.bfloat16):
        query_features, key_features, value, s, z = (
            t.detach().float() for t in (query_features, key_features, value, s, z)
        )
    p = torch.tril(query_features @ key_features.mT)
    above = p @ value + query_features @ s
    below = p.sum(-1, keepdim=True) + query_features @ z[..., None]
    return (
        (above / below).to(dtype),
        (s + key_features.mT @ value).to(dtype),
        (z + key_features.sum(-2)).to(dtype),
    )
