"""Compares positions in float32: 2**24 + 1 passes for 2**24.

Loses: answer-precision
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    seen = k_positions.float() <= m
    scores = key[seen] @ query / math.sqrt(query.shape[-1])
    return torch.softmax(scores, dim=-1) @ value[seen]
