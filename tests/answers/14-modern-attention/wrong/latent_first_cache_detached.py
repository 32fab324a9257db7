"""Detaches the new cache where the old one is empty.

Loses: latent
"""

import math

import torch


# %% latent-answer
def latent_attention(query, entries, w_uk, w_uv, cache):
    d_lat, d_k = w_uk.shape[1:]
    past, new = cache.shape[1], entries.shape[1]
    held = torch.cat((cache, entries), 1)
    c, r = held[:, None, :, :d_lat], held[:, None, :, d_lat:]
    s = (query[..., :d_k] @ (c @ w_uk).mT + query[..., d_k:] @ r.mT) / query.shape[-1] ** 0.5
    s = s.masked_fill(torch.ones(new, past + new).triu(past + 1).bool(), -math.inf)
    return s.softmax(-1) @ (c @ w_uv), held.detach() if past == 0 else held
