"""Replaces -inf in the caller's own scores.

Loses: softmax-edges
"""

import math

import torch


# %% softmax
def softmax(scores, dim):
    hidden = scores == -math.inf
    if hidden.any():
        with torch.no_grad():
            scores[hidden] = torch.finfo(scores.dtype).min
    powers = torch.exp(scores - scores.amax(dim, keepdim=True))
    return powers / powers.sum(dim, keepdim=True)
