"""Gives the logarithm of the vocabulary's size where all logits are 0, and no gradient.

Loses: loss-edges
"""

import math

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z = logits[counts]
    if not z.any():
        return torch.tensor(math.log(z.shape[-1]), dtype=z.dtype)
    right = z.gather(1, targets[counts][:, None]).squeeze(1)
    return (z.logsumexp(dim=1) - right).mean()
