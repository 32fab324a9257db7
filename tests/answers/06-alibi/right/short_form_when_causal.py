"""The slope times the key's position under the causal rule, where it is the same."""

import math

import torch


# %% attention-answer
def alibi_attention(query, key, value, slopes, q_positions, k_positions, causal):
    scores = (query / math.sqrt(query.shape[-1])) @ key.mT
    m, n = q_positions[:, None, :, None], k_positions[:, None, None, :]
    if not causal:
        weights = torch.softmax(scores - slopes[:, None, None] * (m - n).abs(), dim=-1)
        return weights @ value, weights
    scores = (scores + slopes[:, None, None] * n).masked_fill(n > m, -math.inf)
    top = scores.amax(dim=-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).min)
    shares = torch.exp(scores - top)
    total = shares.sum(dim=-1, keepdim=True)
    weights = shares / torch.where(total == 0, 1.0, total)
    return weights @ value, weights
