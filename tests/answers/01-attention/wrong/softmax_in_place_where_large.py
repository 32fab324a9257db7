"""Shifts the scores in place where they are large.

Loses: softmax-edges
"""

import torch


# %% softmax
def softmax(scores, dim):
    if scores.numel() and scores.amax() > 500:
        with torch.no_grad():
            scores -= scores.amax(dim, keepdim=True)
        e = scores.exp()
    else:
        e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
