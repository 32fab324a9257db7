"""-1e9 as minus infinity, or -1e4 in float16: scores may be lower.

Loses: answer-at
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    scores = key @ query / math.sqrt(query.shape[-1])
    seen = k_positions <= m
    fill = -1e4 if scores.dtype == torch.float16 else -1e9
    w = torch.softmax(scores.masked_fill(~seen, fill), 0).masked_fill(~seen, 0)
    return w @ value
