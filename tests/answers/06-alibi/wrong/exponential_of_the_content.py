"""Multiplies the exponentials of content and bias, and a large content is infinite.

Loses: attention-values, attention-precision
"""

import math

import torch


# %% attention-answer
def alibi_attention(query, key, value, slopes, q_positions, k_positions, causal):
    offset = (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).unsqueeze(1)
    content = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    seen = (offset <= 0) | (not causal)
    bias = -slopes.view(-1, 1, 1) * offset.abs()
    top = bias.masked_fill(~seen, -math.inf).amax(dim=-1, keepdim=True)
    top = top.masked_fill(top == -math.inf, 0.0)
    e = torch.exp(content) * torch.exp((bias - top).clamp(max=0.0)) * seen
    total = e.sum(-1, keepdim=True)
    weights = e / torch.where(total == 0, 1.0, total)
    return weights @ value, weights
