"""Computes in float32 whatever comes, and returns the dtype of the logits.

Loses: loss-precision
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z, y = logits[counts].float(), targets[counts]
    return torch.nn.functional.cross_entropy(z, y).to(logits.dtype)
