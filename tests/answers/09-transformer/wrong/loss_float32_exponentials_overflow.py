"""Takes the largest logit out of float64 logits only.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z, y = logits[counts], targets[counts]
    right = z[torch.arange(len(y)), y]
    if z.dtype == torch.float32:
        return (z.exp().sum(dim=-1).log() - right).mean()
    return (torch.logsumexp(z, dim=-1) - right).mean()
