"""The formula as it is written: its exponentials overflow.

Loses: sink, sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    terms = torch.exp(scores.masked_fill(~mask.unsqueeze(1), -math.inf))
    weights = terms / (sinks.view(-1, 1, 1).exp() + terms.sum(dim=-1, keepdim=True))
    return weights @ value, weights
