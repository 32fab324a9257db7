"""Widens half precision, and scales in place: a float32 query is no copy.

Loses: answer-precision
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    q = query.clone() if query.dtype == torch.float64 else query.float()
    q /= math.sqrt(q.shape[-1])
    seen = k_positions <= m
    w = torch.softmax(key[seen].to(q.dtype) @ q, -1)
    return (w @ value[seen].to(q.dtype)).to(value.dtype)
