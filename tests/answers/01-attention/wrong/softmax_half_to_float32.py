"""Computes half precision in float32, and forgets to go back.

Loses: softmax-precision
"""

import torch


# %% softmax
def softmax(scores, dim):
    if scores.dtype.itemsize == 2:
        scores = scores.float()
    return torch.softmax(scores, dim)
