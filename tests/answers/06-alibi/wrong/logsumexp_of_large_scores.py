"""Takes exp(score - logsumexp); far below 0, the logarithm of the sum is rounded away.

Loses: attention-precision
"""

import math

import torch


# %% attention-answer
def alibi_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    slopes: torch.Tensor,
    q_positions: torch.Tensor,
    k_positions: torch.Tensor,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    delta = q_positions[:, None, :, None] - k_positions[:, None, None, :]
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * query.shape[-1] ** -0.5
    scores = scores - slopes[None, :, None, None] * delta.abs().to(query.dtype)
    seen = delta >= 0 if causal else torch.ones_like(delta, dtype=torch.bool)
    blind = ~seen.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~seen, -math.inf).masked_fill(blind, 0.0)
    weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    weights = weights.masked_fill(blind, 0.0)
    return torch.einsum("bhqk,bhkv->bhqv", weights, value), weights
