"""Scores of -inf alone where no key may be seen: nan in place of 0.

Loses: answer-at
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    scores = key @ query / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(k_positions > m, -math.inf)
    return torch.softmax(scores, dim=-1) @ value
