"""Limits the exponents to -100: the weight of -inf is tiny and not 0.

Loses: softmax-edges
"""

import torch


# %% softmax
def softmax(scores, dim):
    powers = torch.exp((scores - scores.amax(dim, keepdim=True)).clamp(min=-100))
    return powers / powers.sum(dim, keepdim=True)
