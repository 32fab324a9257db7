"""Flattens the leading dimensions for bmm: fails where there are none.

Loses: attention-values
"""

import math

import torch


# %% attention
def attention(query, key, value):
    leading = query.shape[:-2]
    q, k, v = query.flatten(0, -3), key.flatten(0, -3), value.flatten(0, -3)
    weights = torch.softmax(torch.bmm(q, k.mT) / math.sqrt(q.shape[-1]), dim=-1)
    output = torch.bmm(weights, v)
    return output.unflatten(0, leading), weights.unflatten(0, leading)
