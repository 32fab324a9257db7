"""Makes a column of zeros of its own where all sinks are 0, and they get no gradient.

Loses: sink
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask.unsqueeze(1), -math.inf)
    column = torch.zeros_like(scores[..., :1])
    if sinks.any():
        column = column + sinks.view(-1, 1, 1)
    weights = torch.softmax(torch.cat((scores, column), dim=-1), dim=-1)[..., :-1]
    return weights @ value, weights
