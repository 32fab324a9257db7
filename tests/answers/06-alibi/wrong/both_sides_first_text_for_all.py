"""Where both sides are seen, as in an encoder, all texts get the distances of the first one.

Loses: attention-values
"""

import math

import torch


# %% attention-answer
def alibi_attention(query, key, value, slopes, q_positions, k_positions, causal):
    offset = (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).unsqueeze(1)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if not causal:
        weights = torch.softmax(scores - slopes.view(-1, 1, 1) * offset[:1].abs(), dim=-1)
        return weights @ value, weights
    ahead = offset > 0
    sees_nothing = ahead.all(dim=-1, keepdim=True)
    scores = scores - slopes.view(-1, 1, 1) * offset.abs()
    scores = scores.masked_fill(ahead, -math.inf).masked_fill(sees_nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(sees_nothing, 0.0)
    return weights @ value, weights
