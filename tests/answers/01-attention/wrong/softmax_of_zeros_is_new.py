"""Scores of zeros get new equal weights, through which no gradient flows.

Loses: softmax-edges
"""

import torch


# %% softmax
def softmax(scores, dim):
    if not scores.any():
        return torch.full_like(scores, 1 / scores.shape[dim])
    powers = (scores - scores.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True)
