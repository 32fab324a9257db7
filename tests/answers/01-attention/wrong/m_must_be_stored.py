"""Sorts by position and looks for m itself, which may have been thrown away.

Loses: answer-at
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    order = k_positions.argsort()
    if m < int(k_positions.min()):
        return value.new_zeros(value.shape[-1])
    last = k_positions[order].tolist().index(m)
    rows = order[: last + 1]
    return torch.softmax(key[rows] @ query / math.sqrt(query.shape[-1]), dim=-1) @ value[rows]
