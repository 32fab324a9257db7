"""Computes everything but the cache in float32, and converts the output back.

Loses: latent-precision
"""

import math

import torch


# %% latent-answer
def latent_attention(query, entries, w_uk, w_uv, cache):
    past, new = cache.shape[1], entries.shape[1]
    d_lat, d_k = w_uk.shape[1:]
    held = torch.cat((cache, entries), dim=1)
    c, r = held.float().unsqueeze(1).split([d_lat, held.shape[2] - d_lat], dim=3)
    q, p = query.float().split([d_k, r.shape[3]], dim=3)
    scores = (q @ (c @ w_uk.float()).mT + p @ r.mT) / math.sqrt(query.shape[-1])
    seen = torch.ones(new, past + new, dtype=torch.bool).tril(past)
    weights = torch.softmax(scores.masked_fill(~seen, -math.inf), dim=-1)
    return (weights @ (c @ w_uv.float())).to(query.dtype), held
