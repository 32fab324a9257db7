"""Adds 1e-12 to the sum of the exponentials, against a logarithm of 0 that cannot come.

Loses: loss-precision
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z, y = logits[counts], targets[counts]
    right = z[torch.arange(len(y)), y]
    top = z.amax(dim=-1, keepdim=True)
    total = (z - top).exp().sum(dim=-1) + 1e-12
    return (total.log() + top[:, 0] - right).mean()
