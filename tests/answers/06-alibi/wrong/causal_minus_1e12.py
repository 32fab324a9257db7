"""−10¹² in place of −∞: less negative than the bias of a key that is very far away.

Loses: attention-causal, attention-precision
"""

import math

import torch


# %% attention-answer
def alibi_attention(query, key, value, slopes, q_positions, k_positions, causal):
    offset = (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).unsqueeze(1)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores - slopes.view(-1, 1, 1) * offset.abs()
    if not causal:
        weights = torch.softmax(scores, dim=-1)
    else:
        ahead = offset > 0
        sees_nothing = ahead.all(dim=-1, keepdim=True)
        scores = scores.masked_fill(ahead, -1e12).masked_fill(sees_nothing, 0.0)
        weights = torch.softmax(scores, dim=-1).masked_fill(sees_nothing, 0.0)
    return weights @ value, weights
