"""Hides keys with -10000 in half precision.

Loses: sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    low = -1e4 if query.dtype in (torch.float16, torch.bfloat16) else -math.inf
    s = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask[:, None], low)
    s = torch.cat((s, sinks[:, None, None].expand(*s.shape[:-1], 1)), -1)
    w = s.softmax(-1)[..., :-1]
    return w @ value, w
