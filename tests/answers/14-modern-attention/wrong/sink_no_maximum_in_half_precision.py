"""Subtracts no largest score in half precision.

Loses: sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    s = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask[:, None], -math.inf)
    s = torch.cat((s, sinks[:, None, None].expand(*s.shape[:-1], 1)), -1)
    if s.dtype in (torch.float16, torch.bfloat16):
        e = s.exp()
        w = (e / e.sum(-1, keepdim=True))[..., :-1]
    else:
        w = s.softmax(-1)[..., :-1]
    return w @ value, w
