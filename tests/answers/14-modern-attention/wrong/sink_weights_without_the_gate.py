"""The output passes the gate, and the weights do not.

Loses: sink, sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask.unsqueeze(1), -math.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    gate = torch.sigmoid(scores.logsumexp(dim=-1, keepdim=True) - sinks.view(-1, 1, 1))
    return gate * (weights @ value), weights
