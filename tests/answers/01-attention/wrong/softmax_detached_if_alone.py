"""The only score of a row gets a new 1, through which no gradient flows.

Loses: softmax-edges
"""

import torch


# %% softmax
def softmax(scores, dim):
    if scores.shape[dim] == 1:
        return torch.ones_like(scores)
    powers = (scores - scores.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True)
