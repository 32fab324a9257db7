"""Mixes the scores of the single keys, which may leave the dtype, instead of the keys.

Loses: linformer-precision
"""

# %% linformer-answer
import math

import torch


def linformer_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    key_projection: torch.Tensor,
    value_projection: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = query @ key.transpose(-2, -1)
    scores = scores @ key_projection.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ (value_projection @ value), weights
