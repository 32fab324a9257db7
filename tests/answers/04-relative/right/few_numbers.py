"""Compares with the whole table first, picks afterwards, and sums weights of equal differences."""

import math

import torch


# %% shaw-scores-answer
def shaw_scores(q, k, key_table, relative_position):
    c = (key_table.shape[0] - 1) // 2
    rows = torch.clamp(relative_position, min=-c, max=c) + c
    rows = rows[(None,) * (3 - rows.dim())].unsqueeze(1).expand(*q.shape[:3], -1)
    q = q / math.sqrt(q.shape[-1])
    return q @ k.mT + torch.take_along_dim(q @ key_table.mT, rows, dim=-1)


# %% shaw-values-answer
def shaw_values(weights, value, value_table, relative_position):
    c = value_table.shape[0] // 2
    rows = (relative_position.clamp(-c, c) + c).unsqueeze(-3).expand(weights.shape)
    per_offset = weights.new_zeros(*weights.shape[:-1], 2 * c + 1)
    return weights @ value + per_offset.scatter_add(-1, rows, weights) @ value_table
