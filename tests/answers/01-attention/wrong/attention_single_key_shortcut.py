"""One key takes the whole weight at once, and query and key get no gradient.

Loses: attention-edges
"""

# %% attention
import math

import torch


def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    if key.shape[-2] == 1:  # the only key takes the whole weight
        weights = torch.ones(*query.shape[:-1], 1, dtype=query.dtype)
        return weights @ value, weights
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
