"""The padding is multiplied by 0: what is nan there stays nan.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    rows = torch.logsumexp(logits, dim=-1) - logits.gather(-1, targets[..., None])[..., 0]
    return (rows * counts).sum() / counts.sum()
