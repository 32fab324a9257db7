"""In half precision the exponentials are taken in float32 as they are: they overflow.

Loses: attention-edges
"""

import math

import torch


# %% attention
def attention(query, key, value):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if query.dtype in (torch.float16, torch.bfloat16):
        e = scores.float().exp()
        w = (e / e.sum(-1, keepdim=True)).to(query.dtype)
    else:
        w = torch.softmax(scores, -1)
    return w @ value, w
