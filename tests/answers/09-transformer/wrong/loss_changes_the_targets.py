"""Writes −100 into the caller's targets.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    targets[~counts] = -100
    kept = targets != -100
    return torch.nn.functional.cross_entropy(logits[kept], targets[kept])
