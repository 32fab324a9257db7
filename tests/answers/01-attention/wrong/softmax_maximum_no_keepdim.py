"""The maximum has lost its dimension: an error, or another row's maximum.

Loses: softmax-values, softmax-edges, softmax-precision
"""

import torch


# %% softmax
def softmax(scores, dim):
    powers = torch.exp(scores - scores.amax(dim))
    return powers / powers.sum(dim, keepdim=True)
