"""The largest score of the whole tensor is subtracted, so rows far below it underflow to 0/0.

Loses: attention-edges
"""

import math

import torch


# %% attention
def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Let each query take a weighted mean of the values."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    powers = (scores - scores.max()).exp()
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return weights @ value, weights
