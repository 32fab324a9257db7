"""A gate, and zeros where it gives no number: the gradients are still no numbers.

Loses: sink
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask.unsqueeze(1), -math.inf)
    gate = torch.sigmoid(scores.logsumexp(dim=-1, keepdim=True) - sinks.view(-1, 1, 1))
    weights = (gate * torch.softmax(scores, dim=-1)).nan_to_num(0.0)
    return weights @ value, weights
