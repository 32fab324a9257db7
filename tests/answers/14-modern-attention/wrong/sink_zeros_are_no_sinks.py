"""Takes sinks of 0 for no sinks.

Loses: sink
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    hidden = ~mask.unsqueeze(1)
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(hidden, -math.inf)
    if sinks.any():
        column = sinks.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
        weights = torch.softmax(torch.cat((scores, column), dim=-1), dim=-1)[..., :-1]
    else:
        blind = hidden.all(dim=-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(blind, 0.0), dim=-1).masked_fill(blind, 0.0)
    return weights @ value, weights
