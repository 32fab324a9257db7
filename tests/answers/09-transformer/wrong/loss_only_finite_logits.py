"""Logits that are not finite become 0, and losses are multiplied by 0: 1e308 and -1e308 overflow.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z = logits.where(logits.isfinite(), 0.0)
    losses = torch.logsumexp(z, dim=-1) - z.gather(-1, targets[..., None])[..., 0]
    return (losses * counts).sum() / counts.sum()
