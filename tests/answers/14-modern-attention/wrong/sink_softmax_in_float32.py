"""The softmax is computed in float32, also for float64.

Loses: sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask.unsqueeze(1), -math.inf)
    column = sinks.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    both = torch.cat((scores, column), dim=-1)
    weights = torch.softmax(both, dim=-1, dtype=torch.float32)[..., :-1].to(query.dtype)
    return weights @ value, weights
