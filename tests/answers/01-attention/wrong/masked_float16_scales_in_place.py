"""In float16 the query is scaled before the product, in place, so the argument changes.

Loses: masked-edges
"""

import math

import torch


# %% masked-attention
def masked_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention in which each query sees only the keys that the mask allows."""
    scale = 1 / math.sqrt(query.shape[-1])
    if query.dtype == torch.float16:
        query *= scale  # before the product, so that it does not overflow
        scores = query @ key.transpose(-2, -1)
    else:
        scores = query @ key.transpose(-2, -1) * scale
    sees_nothing = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(sees_nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(sees_nothing, 0.0)
    return weights @ value, weights
