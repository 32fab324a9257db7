"""Where queries and keys have the same positions, rows and columns decide who lies ahead.

Loses: attention-causal
"""

import math

import torch


# %% attention-answer
def alibi_attention(query, key, value, slopes, q_positions, k_positions, causal):
    difference = q_positions[:, None, :, None] - k_positions[:, None, None, :]
    bias = -slopes[:, None, None] * difference.abs().to(query.dtype)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) + bias
    if not causal:
        weights = torch.softmax(scores, dim=-1)
        return weights @ value, weights
    seen = difference >= 0
    if torch.equal(q_positions, k_positions):
        seen = torch.ones(seen.shape[-2:], dtype=torch.bool).tril().expand(seen.shape)
    nothing = ~seen.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~seen, -math.inf).masked_fill(nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(nothing, 0.0)
    return weights @ value, weights
