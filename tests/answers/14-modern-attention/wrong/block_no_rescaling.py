"""The sums so far are not shrunk when the maximum rises.

Loses: block, block-precision
"""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    new_largest = torch.maximum(largest, scores.amax(dim=-1))
    level = new_largest.masked_fill(new_largest == -math.inf, 0.0)
    terms = torch.exp(scores - level.unsqueeze(-1))
    return new_largest, total + terms.sum(dim=-1), weighted + terms @ value
