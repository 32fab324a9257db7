"""Scales the caller's query.

Loses: sink
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    query /= math.sqrt(query.shape[-1])
    scores = (query @ key.mT).masked_fill(~mask.unsqueeze(1), -math.inf)
    column = sinks.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    weights = torch.softmax(torch.cat((scores, column), dim=-1), dim=-1)[..., :-1]
    return weights @ value, weights
