"""Divides by exp of the maximum after the exponentials: they overflow for large scores.

Loses: block, block-precision
"""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    new_largest = torch.maximum(largest, scores.amax(dim=-1))
    level = new_largest.masked_fill(new_largest == -math.inf, 0.0)
    below = torch.exp(level)
    shrink = torch.exp(largest) / below
    terms = torch.exp(scores) / below.unsqueeze(-1)
    new_total = shrink * total + terms.sum(dim=-1)
    return new_largest, new_total, shrink.unsqueeze(-1) * weighted + terms @ value
