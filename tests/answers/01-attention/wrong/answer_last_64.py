"""Looks at the last 64 rows of the cache only.

Loses: answer-at, answer-precision
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    key, value, k_positions = key[-64:], value[-64:], k_positions[-64:]
    seen = k_positions <= m
    return torch.softmax(key[seen] @ query / math.sqrt(query.shape[-1]), -1) @ value[seen]
