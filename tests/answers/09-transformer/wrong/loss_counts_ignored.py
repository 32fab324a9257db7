"""Every row counts.

Loses: loss-values, loss-edges, loss-precision
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
