"""Shrinks the sums of the caller.

Loses: block
"""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    new_largest = torch.maximum(largest, scores.amax(dim=-1))
    level = new_largest.masked_fill(new_largest == -math.inf, 0.0)
    shrink = torch.exp(largest - level)
    terms = torch.exp(scores - level.unsqueeze(-1))
    total *= shrink
    weighted *= shrink.unsqueeze(-1)
    return new_largest, total + terms.sum(dim=-1), weighted + terms @ value
