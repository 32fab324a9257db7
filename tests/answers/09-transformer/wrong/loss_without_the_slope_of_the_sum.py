"""Right, but the sum of exponentials is taken as a constant.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z, y = logits[counts], targets[counts]
    return (torch.logsumexp(z.detach(), dim=-1) - z[torch.arange(len(y)), y]).mean()
