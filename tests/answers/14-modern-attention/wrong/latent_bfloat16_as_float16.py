"""Computes bfloat16 in float16, which has a smaller range.

Loses: latent-precision
"""

import math

import torch


# %% latent-answer
def latent_attention(query, entries, w_uk, w_uv, cache):
    dtype = query.dtype
    held0 = torch.cat((cache, entries), 1)
    held = held0
    if dtype == torch.bfloat16:
        query, w_uk, w_uv, held = (t.half() for t in (query, w_uk, w_uv, held0))
    d_lat, d_k = w_uk.shape[1:]
    past, new = cache.shape[1], entries.shape[1]
    c, r = held[:, None, :, :d_lat], held[:, None, :, d_lat:]
    s = (query[..., :d_k] @ (c @ w_uk).mT + query[..., d_k:] @ r.mT) / query.shape[-1] ** 0.5
    s = s.masked_fill(torch.ones(new, past + new).triu(past + 1).bool(), -math.inf)
    return (s.softmax(-1) @ (c @ w_uv)).to(dtype), held0
