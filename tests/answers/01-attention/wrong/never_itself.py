"""n < m: a token does not see itself, as if m and n could not be equal.

Loses: answer-at, answer-precision
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    seen = k_positions < m
    scores = key[seen] @ query / math.sqrt(query.shape[-1])
    return torch.softmax(scores, dim=-1) @ value[seen]
