"""Widens half precision first, and subtracts in place: float32 scores are no copy.

Loses: softmax-edges
"""

import torch


# %% softmax
def softmax(scores, dim):
    x = scores if scores.dtype == torch.float64 else scores.float()
    if x.dtype == torch.float32:
        x -= x.amax(dim, keepdim=True)
    else:
        x = x - x.amax(dim, keepdim=True)
    e = x.exp()
    return (e / e.sum(dim, keepdim=True)).to(scores.dtype)
