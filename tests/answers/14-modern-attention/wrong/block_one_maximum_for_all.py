"""One maximum for all queries of a head.

Loses: block, block-precision
"""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    highest = scores.amax(dim=(-2, -1), keepdim=True).squeeze(-1)
    new_largest = torch.maximum(largest, highest)
    level = new_largest.masked_fill(new_largest == -math.inf, 0.0)
    shrink = torch.exp(largest - level)
    terms = torch.exp(scores - level.unsqueeze(-1))
    new_total = shrink * total + terms.sum(dim=-1)
    return new_largest, new_total, shrink.unsqueeze(-1) * weighted + terms @ value
