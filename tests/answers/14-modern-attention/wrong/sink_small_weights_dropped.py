"""Takes weights below 1e-20 for 0.

Loses: sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    s = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask[:, None], -math.inf)
    s = torch.cat((s, sinks[:, None, None].expand(*s.shape[:-1], 1)), -1)
    w = s.softmax(-1)[..., :-1]
    w = torch.where(w < 1e-20, 0.0, w)
    return w @ value, w
