"""Takes the biases alone where all queries are 0: right values, and no gradient for the queries.

Loses: attention-values, attention-causal
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
    offset = (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).unsqueeze(1)
    scores = -slopes.view(-1, 1, 1) * offset.abs()
    if query.any():
        scores = scores + query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if causal:
        ahead = offset > 0
        blind = ahead.all(dim=-1, keepdim=True)
        scores = scores.masked_fill(ahead, -math.inf).masked_fill(blind, 0.0)
        weights = torch.softmax(scores, dim=-1).masked_fill(blind, 0.0)
    else:
        weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
