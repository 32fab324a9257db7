"""Divides the sink's logit by the root of d_k too.

Loses: sink, sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    scores = (query @ key.mT).masked_fill(~mask.unsqueeze(1), -math.inf)
    column = sinks.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    scores = torch.cat((scores, column), dim=-1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)[..., :-1]
    return weights @ value, weights
