"""Hides keys with the lowest number of the dtype, except in float32.

Loses: sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    low = torch.finfo(query.dtype).min if query.dtype != torch.float32 else -math.inf
    s = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask[:, None], low)
    s = torch.cat((s, sinks[:, None, None].expand(*s.shape[:-1], 1)), -1)
    w = s.softmax(-1)[..., :-1]
    return w @ value, w
