"""Padding adds nothing to the sum, and is counted in the denominator.

Loses: loss-values, loss-edges, loss-precision
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    rows = torch.logsumexp(logits, dim=-1) - logits.gather(-1, targets[..., None])[..., 0]
    return torch.where(counts, rows, 0.0).mean()
