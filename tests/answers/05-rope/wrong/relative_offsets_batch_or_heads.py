"""Offsets (n, q_len, k_len) belong to the texts if there are n texts, even if n heads are meant.

Loses: relative
"""

import torch


# %% relative-answer
def relative_scores(
    query: torch.Tensor, key: torch.Tensor, offsets: torch.Tensor, frequencies: torch.Tensor
) -> torch.Tensor:
    """The scores of RoPE from queries and keys that are not turned, and their offsets."""
    if query.dim() == 4 and offsets.dim() == 3 and offsets.shape[0] == query.shape[0]:
        offsets = offsets.unsqueeze(1)  # the same for all heads of a text
    angles = offsets.unsqueeze(-1) * frequencies
    a, b = query[..., 0::2].unsqueeze(-2), query[..., 1::2].unsqueeze(-2)
    c, d = key[..., 0::2].unsqueeze(-3), key[..., 1::2].unsqueeze(-3)
    along, across = a * c + b * d, b * c - a * d
    return (along * angles.cos() + across * angles.sin()).sum(dim=-1)
