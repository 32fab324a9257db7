"""Keeps the output so far in place of the sum: divides by the sum of the weights.

Loses: block, block-precision
"""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    new_largest = torch.maximum(largest, scores.amax(dim=-1))
    level = new_largest.masked_fill(new_largest == -math.inf, 0.0)
    shrink = torch.exp(largest - level)
    terms = torch.exp(scores - level.unsqueeze(-1))
    new_total = shrink * total + terms.sum(dim=-1)
    sums = shrink.unsqueeze(-1) * weighted + terms @ value
    return new_largest, new_total, sums / new_total.clamp(min=1e-30).unsqueeze(-1)
