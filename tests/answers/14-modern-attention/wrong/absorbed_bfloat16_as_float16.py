"""Computes bfloat16 in float16, which has a smaller range.

Loses: absorbed-precision
"""

import torch


# %% absorbed-answer
def absorbed_attention(query, w_uk, w_uv, attend):
    dtype = query.dtype
    if dtype == torch.bfloat16:
        query, w_uk, w_uv = query.half(), w_uk.half(), w_uv.half()
    d_k = w_uk.shape[-1]
    sent = torch.cat((query[..., :d_k] @ w_uk.mT, query[..., d_k:]), -1)
    return (attend(sent, query.shape[-1] ** -0.5) @ w_uv).to(dtype)
