"""Detaches half precision when it converts it to float32.

Loses: sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    dtype = query.dtype
    if dtype in (torch.float16, torch.bfloat16):
        query, key, value, sinks = (x.detach().float() for x in (query, key, value, sinks))
    s = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask[:, None], -math.inf)
    s = torch.cat((s, sinks[:, None, None].expand(*s.shape[:-1], 1)), -1)
    w = s.softmax(-1)[..., :-1]
    return (w @ value).to(dtype), w.to(dtype)
