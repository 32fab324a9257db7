"""Adds up the powers one after the other in the dtype of the scores: in float16, 2048 + 1 is 2048.

Loses: softmax-precision
"""

import torch


# %% softmax
def softmax(scores, dim):
    powers = (scores - scores.amax(dim, keepdim=True)).exp()
    total = torch.zeros_like(powers.narrow(dim, 0, 1))
    for n in range(powers.shape[dim]):
        total = total + powers.narrow(dim, n, 1)
    return powers / total
