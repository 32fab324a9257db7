"""The last score of the row is subtracted: exp overflows where it is far below the largest.

Loses: softmax-edges
"""

import torch


# %% softmax
def softmax(scores, dim):
    last = scores.select(dim, -1).unsqueeze(dim)
    powers = torch.exp(scores - last)
    return powers / powers.sum(dim, keepdim=True)
