"""Widens half precision, and scales in place: a float32 query is no copy.

Loses: attention-edges
"""

import math

import torch


# %% attention
def attention(query, key, value):
    q = query if query.dtype == torch.float64 else query.float()
    if q.dtype == torch.float32:
        q /= math.sqrt(q.shape[-1])
    else:
        q = q / math.sqrt(q.shape[-1])
    w = torch.softmax(q @ key.to(q.dtype).mT, -1)
    return (w @ value.to(q.dtype)).to(query.dtype), w.to(query.dtype)
