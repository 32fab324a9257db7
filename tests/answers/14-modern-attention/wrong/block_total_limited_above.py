"""Keeps the sum of a block's weights below ten thousand.

Loses: block-precision
"""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    new_largest = torch.maximum(largest, scores.amax(dim=-1))
    level = new_largest.masked_fill(new_largest == -math.inf, 0.0)
    shrink = torch.exp(largest - level)
    terms = torch.exp(scores - level.unsqueeze(-1))
    new_total = shrink * total + terms.sum(dim=-1).clamp(max=1e4)
    return new_largest, new_total, shrink.unsqueeze(-1) * weighted + terms @ value
