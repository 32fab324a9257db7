"""Leaves out no key at all.

Loses: answer-at, answer-precision
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    seen = k_positions == k_positions
    scores = key[seen] @ query / math.sqrt(query.shape[-1])
    return torch.softmax(scores, dim=-1) @ value[seen]
