"""Asks with `any` whether something is cached, and so leaves out entries that are all 0.

Loses: latent
"""

import math

import torch


# %% latent-answer
def latent_attention(
    query: torch.Tensor,
    entries: torch.Tensor,
    w_uk: torch.Tensor,
    w_uv: torch.Tensor,
    cache: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    held = torch.cat((cache, entries), dim=1) if cache.any() else entries
    d_lat, d_k = w_uk.shape[1:]
    new, total = entries.shape[1], held.shape[1]
    latents, rotated = held[:, None, :, :d_lat], held[:, None, :, d_lat:]
    scores = query[..., :d_k] @ (latents @ w_uk).mT + query[..., d_k:] @ rotated.mT
    scores = scores / math.sqrt(query.shape[-1])
    later = torch.ones(new, total, dtype=torch.bool).triu(total - new + 1)
    weights = torch.softmax(scores.masked_fill(later, -math.inf), dim=-1)
    return weights @ (latents @ w_uv), held
