"""Subtracts the largest score of all keys, also of those that may not be seen.

Loses: answer-at
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    scores = (key * query).sum(-1) / math.sqrt(query.numel())
    powers = torch.where(k_positions <= m, (scores - scores.max()).exp(), 0.0)
    return (powers @ value) / powers.sum().clamp(min=torch.finfo(value.dtype).tiny)
