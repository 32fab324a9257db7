"""Gives a hidden key the smallest finite score of the dtype; a sink can be as small.

Loses: sink, sink-precision
"""

import math

import torch


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    wide = torch.promote_types(query.dtype, torch.float32)
    q, k, v, z = (x.to(wide) for x in (query, key, value, sinks))
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    scores = scores.masked_fill(~mask.unsqueeze(1), torch.finfo(scores.dtype).min)
    column = z.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    weights = torch.softmax(torch.cat((scores, column), dim=-1), dim=-1)[..., :-1]
    output = weights @ v
    return output.to(query.dtype), weights.to(query.dtype)
