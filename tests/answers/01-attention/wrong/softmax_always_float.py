"""Computes in float32 and returns float32, whatever came in.

Loses: softmax-values, softmax-edges, softmax-precision
"""

import torch


# %% softmax
def softmax(scores, dim):
    wide = scores.float()
    powers = torch.exp(wide - wide.amax(dim, keepdim=True))
    return powers / powers.sum(dim, keepdim=True)
