"""In half precision the exponentials are taken in float32 as they are: they overflow.

Loses: answer-at
"""

import math

import torch


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    seen = k_positions <= m
    scores = key[seen] @ query / math.sqrt(query.shape[-1])
    if scores.dtype in (torch.float16, torch.bfloat16):
        e = scores.float().exp()
        w = (e / e.sum()).to(scores.dtype)
    else:
        w = torch.softmax(scores, -1)
    return w @ value[seen]
