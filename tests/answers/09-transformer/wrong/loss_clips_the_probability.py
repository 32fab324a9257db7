"""Keeps each probability between 1e-7 and 1 - 1e-7, as some libraries do.

Loses: loss-edges, loss-precision
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z, y = logits[counts], targets[counts]
    chances = torch.softmax(z, dim=-1)[torch.arange(len(y)), y]
    return -chances.clamp(1e-7, 1 - 1e-7).log().mean()
