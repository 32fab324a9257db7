"""Replaces nan and infinity in the logits it was given.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z, y = logits.nan_to_num_()[counts], targets[counts]
    right = z[torch.arange(len(y)), y]
    return (torch.logsumexp(z, dim=-1) - right).mean()
