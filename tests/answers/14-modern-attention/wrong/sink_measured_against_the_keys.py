"""Subtracts the largest score of the keys: a much larger sink has the gradient nan.

Loses: sink
"""

# %% sink-answer
import math

import torch


def attend_with_sink(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    sinks: torch.Tensor,
    mask: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    wide = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(wide) @ key.to(wide).mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask.unsqueeze(1), -math.inf)
    z = sinks.to(wide).view(1, -1, 1, 1)
    top = scores.detach().amax(dim=-1, keepdim=True)
    top = torch.where(top == -math.inf, z.detach(), top)
    powers = torch.exp(scores - top)
    weights = powers / (powers.sum(dim=-1, keepdim=True) + torch.exp(z - top))
    return (weights @ value.to(wide)).to(query.dtype), weights.to(query.dtype)
