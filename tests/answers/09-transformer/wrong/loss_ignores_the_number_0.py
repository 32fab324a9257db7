"""Takes the target 0 for padding, as well as what the mask says.

Loses: loss-values, loss-edges, loss-precision
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    y = targets.masked_fill(~counts, 0)
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), y, ignore_index=0)
