"""Scales contents and positions each by a root of their own.

Loses: latent, latent-precision
"""

import math

import torch


# %% latent-answer
def latent_attention(query, entries, w_uk, w_uv, cache):
    past, new = cache.shape[1], entries.shape[1]
    d_lat, d_k = w_uk.shape[1:]
    held = torch.cat((cache, entries), dim=1)
    c, r = held[..., :d_lat].unsqueeze(1), held[..., d_lat:].unsqueeze(1)
    scores = query[..., :d_k] @ (c @ w_uk).mT / math.sqrt(d_k) + query[
        ..., d_k:
    ] @ r.mT / math.sqrt(r.shape[-1])
    seen = torch.ones(new, past + new, dtype=torch.bool).tril(past)
    weights = torch.softmax(scores.masked_fill(~seen, -math.inf), dim=-1)
    return weights @ (c @ w_uv), held
