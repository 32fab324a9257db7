"""Multiplies exponentials with γ to the distance, which is 0 for far keys.

Loses: attention-values, attention-causal, attention-precision
"""

import math

import torch


# %% attention-answer
def alibi_attention(query, key, value, slopes, q_positions, k_positions, causal):
    offset = k_positions[:, None, None, :] - q_positions[:, None, :, None]
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    shares = torch.exp(scores) * torch.exp(-slopes[:, None, None]) ** offset.abs()
    if causal:
        shares = shares.masked_fill(offset > 0, 0.0)
    weights = shares / shares.sum(dim=-1, keepdim=True).clamp(min=1e-30)
    return weights @ value, weights
