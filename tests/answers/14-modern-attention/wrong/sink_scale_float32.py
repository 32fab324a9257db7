"""The scale is a float32 number.

Loses: sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    scores = query @ key.mT / torch.tensor(math.sqrt(query.shape[-1]))
    scores = scores.masked_fill(~mask.unsqueeze(1), -math.inf)
    column = sinks.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    weights = torch.softmax(torch.cat((scores, column), dim=-1), dim=-1)[..., :-1]
    return weights @ value, weights
