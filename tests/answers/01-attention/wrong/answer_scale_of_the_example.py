"""The 2 of the visible example in place of √d_k, for the one query.

Loses: answer-at, answer-precision
"""

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    seen = k_positions <= m
    return torch.softmax(key[seen] @ query / 2, dim=-1) @ value[seen]
