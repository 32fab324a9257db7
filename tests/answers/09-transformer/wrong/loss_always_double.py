"""Always float64.

Loses: loss-precision
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z, y = logits[counts].double(), targets[counts]
    return torch.nn.functional.cross_entropy(z, y)
