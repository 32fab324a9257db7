"""Has a way without a mask, in which the sink is detached.

Loses: sink
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    s = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask[:, None], -math.inf)
    if mask.all():
        m = torch.maximum(s.amax(-1, keepdim=True), sinks[:, None, None]).detach()
        e = (s - m).exp()
        w = e / (e.sum(-1, keepdim=True) + (sinks.detach()[:, None, None] - m).exp())
        return w @ value, w
    s = torch.cat((s, sinks[:, None, None].expand(*s.shape[:-1], 1)), -1)
    w = s.softmax(-1)[..., :-1]
    return w @ value, w
