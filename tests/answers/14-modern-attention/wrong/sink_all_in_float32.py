"""Computes everything in float32, and converts the results back.

Loses: sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    dtype = query.dtype
    query, key, value, sinks = (part.float() for part in (query, key, value, sinks))
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask.unsqueeze(1), -math.inf)
    column = sinks.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    weights = torch.softmax(torch.cat((scores, column), dim=-1), dim=-1)[..., :-1]
    return (weights @ value).to(dtype), weights.to(dtype)
