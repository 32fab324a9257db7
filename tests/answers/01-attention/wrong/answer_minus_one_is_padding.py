"""Takes the position -1 for an empty place in the cache.

Loses: answer-at
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    seen = (k_positions <= m) & (k_positions != -1)
    return torch.softmax(key[seen] @ query / math.sqrt(query.shape[-1]), -1) @ value[seen]
