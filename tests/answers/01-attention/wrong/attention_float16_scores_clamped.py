"""In float16 scores are cut off at 10000, though the dtype holds larger ones.

Loses: attention-edges
"""

import math

import torch


# %% attention
def attention(query, key, value):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if query.dtype == torch.float16:
        scores = scores.clamp(-1e4, 1e4)
    w = torch.softmax(scores, -1)
    return w @ value, w
