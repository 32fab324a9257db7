"""In float16 hidden scores become -10000 and not -inf, so they win over scores such as -20000.

Loses: masked-edges
"""

import math

import torch


# %% masked-attention
def masked_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention in which each query sees only the keys that the mask allows."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    sees_nothing = ~mask.any(dim=-1, keepdim=True)
    low = -1e4 if scores.dtype == torch.float16 else -math.inf
    scores = scores.masked_fill(~mask, low).masked_fill(sees_nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(sees_nothing, 0.0)
    return weights @ value, weights
