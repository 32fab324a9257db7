"""Half of the dtype's smallest number as minus infinity: in float16 that is -32752.

Loses: answer-at
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    scores = key @ query / math.sqrt(query.shape[-1])
    seen = k_positions <= m
    w = torch.softmax(scores.masked_fill(~seen, torch.finfo(scores.dtype).min / 2), 0).masked_fill(
        ~seen, 0
    )
    return w @ value
