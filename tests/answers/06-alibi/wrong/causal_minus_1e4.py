"""−10⁴ in place of −∞: less negative than the bias of a far key.

Loses: attention-causal, attention-precision
"""

import math

import torch


# %% attention-answer
def alibi_attention(query, key, value, slopes, q_positions, k_positions, causal):
    offset = k_positions[:, None, None, :] - q_positions[:, None, :, None]
    bias = -slopes[:, None, None] * offset.abs()
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) + bias
    ahead = offset > 0 if causal else torch.zeros_like(offset, dtype=torch.bool)
    nothing = ahead.all(dim=-1, keepdim=True)
    scores = scores.masked_fill(ahead, -1e4).masked_fill(nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(nothing, 0.0)
    return weights @ value, weights
