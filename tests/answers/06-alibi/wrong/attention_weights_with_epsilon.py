"""Divides by the sum and a little more, so that weights of far keys alone become 0.

Loses: attention-values, attention-causal, attention-precision
"""

import math

import torch


# %% attention-answer
def alibi_attention(query, key, value, slopes, q_positions, k_positions, causal):
    offset = (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).unsqueeze(1)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores - slopes.view(-1, 1, 1) * offset.abs()
    if causal:
        scores = scores.masked_fill(offset > 0, -math.inf)
    shares = torch.exp(scores)
    weights = shares / (shares.sum(dim=-1, keepdim=True) + 1e-9)
    return weights @ value, weights
