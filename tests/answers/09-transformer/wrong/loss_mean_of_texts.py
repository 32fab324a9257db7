"""The mean over the texts of each text's mean.

Loses: loss-values
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    rows = torch.logsumexp(logits, dim=-1) - logits.gather(-1, targets[..., None])[..., 0]
    rows = torch.where(counts, rows, 0.0)
    return (rows.sum(dim=1) / counts.sum(dim=1)).mean()
