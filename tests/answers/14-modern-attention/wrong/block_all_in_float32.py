"""Computes everything in float32, and converts the state back.

Loses: block-precision
"""

import math

import torch


# %% block-answer
def add_block(*tensors):
    scores, value, largest, total, weighted = (part.float() for part in tensors)
    new_largest = torch.maximum(largest, scores.amax(dim=-1))
    level = new_largest.masked_fill(new_largest == -math.inf, 0.0)
    shrink = torch.exp(largest - level)
    terms = torch.exp(scores - level.unsqueeze(-1))
    new_total = shrink * total + terms.sum(dim=-1)
    new_weighted = shrink.unsqueeze(-1) * weighted + terms @ value
    return tuple(part.to(tensors[0].dtype) for part in (new_largest, new_total, new_weighted))
