"""The factor is upside down.

Loses: block, block-precision
"""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    new_largest = torch.maximum(largest, scores.amax(dim=-1))
    level = new_largest.masked_fill(new_largest == -math.inf, 0.0)
    old = largest.masked_fill(largest == -math.inf, 0.0)
    factor = torch.exp(level - old)
    terms = torch.exp(scores - level.unsqueeze(-1))
    new_total = factor * total + terms.sum(dim=-1)
    return new_largest, new_total, factor.unsqueeze(-1) * weighted + terms @ value
