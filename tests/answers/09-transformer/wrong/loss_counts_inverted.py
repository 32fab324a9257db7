"""The padding counts, and nothing else.

Loses: loss-values, loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    return torch.nn.functional.cross_entropy(logits[~counts], targets[~counts])
