"""The exponentials are summed up as they are.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z, y = logits[counts], targets[counts]
    return (z.exp().sum(dim=-1).log() - z[torch.arange(len(y)), y]).mean()
