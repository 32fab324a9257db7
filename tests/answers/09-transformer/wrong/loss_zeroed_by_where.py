"""Sets the losses that do not count to 0 with `where`, too late for their gradient.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    right = logits.gather(-1, targets[..., None])[..., 0]
    losses = torch.where(counts, torch.logsumexp(logits, dim=-1) - right, 0.0)
    return losses.sum() / counts.sum()
