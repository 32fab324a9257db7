"""Subtracts the largest score of the keys: not a number where no key is seen.

Loses: sink, sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask.unsqueeze(1), -math.inf)
    top = scores.amax(dim=-1, keepdim=True)
    terms = torch.exp(scores - top)
    sink = torch.exp(sinks.view(-1, 1, 1) - top)
    weights = terms / (sink + terms.sum(dim=-1, keepdim=True))
    return weights @ value, weights
