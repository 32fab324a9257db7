"""Makes the weights sum to 1 again after the sink is dropped.

Loses: sink, sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask.unsqueeze(1), -math.inf)
    column = sinks.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    weights = torch.softmax(torch.cat((scores, column), dim=-1), dim=-1)[..., :-1]
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)
    return weights @ value, weights
