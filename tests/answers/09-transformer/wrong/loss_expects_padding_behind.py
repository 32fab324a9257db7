"""Takes as many rows from the beginning of each text as count, wherever these are.

Loses: loss-values, loss-edges, loss-precision
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    rows = torch.arange(counts.shape[1]) < counts.sum(dim=1, keepdim=True)
    return torch.nn.functional.cross_entropy(logits[rows], targets[rows])
