"""The logarithm of the softmax: a small probability becomes 0, and its logarithm infinite.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z, y = logits[counts], targets[counts]
    return -torch.softmax(z, dim=-1).log()[torch.arange(len(y)), y].mean()
