"""The distance of a key becomes int32, where 2**60 is 0.

Loses: answer-precision
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    seen = (k_positions - m).int() <= 0
    return torch.softmax(key[seen] @ query / math.sqrt(query.shape[-1]), -1) @ value[seen]
