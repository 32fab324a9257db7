"""Keeps the weights of an earlier call and gives them out for all scores of that shape.

Loses: softmax-values, softmax-edges
"""

import torch

# %% softmax
known = {}


def softmax(scores, dim):
    key = scores.shape, scores.dtype, dim
    if key not in known:
        powers = torch.exp(scores - scores.amax(dim, keepdim=True))
        known[key] = powers / powers.sum(dim, keepdim=True)
    return known[key]
