"""Takes float32 logits out of the graph when it widens them.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    wide = logits if logits.dtype == torch.float64 else logits.data.double()
    z, y = wide[counts], targets[counts]
    right = z[torch.arange(len(y)), y]
    return (torch.logsumexp(z, dim=-1) - right).mean().to(logits.dtype)
