"""Replaces nan and infinity by large numbers, whose difference is infinite, and multiplies by 0.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z = torch.nan_to_num(logits)
    losses = torch.logsumexp(z, dim=-1) - z.gather(-1, targets[..., None])[..., 0]
    return (losses * counts).sum() / counts.sum()
