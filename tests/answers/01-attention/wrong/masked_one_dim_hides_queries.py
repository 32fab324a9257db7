"""A mask of shape (k_len,) also hides queries where q_len = k_len, as if it were padding.

Loses: masked-values
"""

import math

import torch


# %% masked-attention
def masked_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention in which each query sees only the keys that the mask allows."""
    if mask.dim() == 1 and mask.shape[0] == query.shape[-2]:
        mask = mask.unsqueeze(-1) & mask  # padding neither asks nor is asked
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    sees_nothing = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(sees_nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(sees_nothing, 0.0)
    return weights @ value, weights
