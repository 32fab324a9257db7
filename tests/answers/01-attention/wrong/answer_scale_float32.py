"""The one query is scaled by a float32 root.

Loses: answer-precision
"""

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    seen = k_positions <= m
    scores = key[seen] @ query / torch.sqrt(torch.tensor(query.shape[-1]))
    return torch.softmax(scores, dim=-1) @ value[seen]
