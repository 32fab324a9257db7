"""The largest logit is looked for in pieces of the vocabulary, beginning with -1e9.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    z, y = logits[counts], targets[counts]
    top = torch.full((len(z),), -1e9, dtype=z.dtype)
    total = torch.zeros_like(top)
    for piece in z.split(1024, dim=-1):
        higher = torch.maximum(top, piece.amax(dim=-1))
        total = total * (top - higher).exp() + (piece - higher[:, None]).exp().sum(dim=-1)
        top = higher
    return (top + total.log() - z[torch.arange(len(y)), y]).mean()
