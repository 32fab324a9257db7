"""attention uses bmm, for at most two leading dimensions.

Loses: attention-values
"""

import math

import torch


# %% attention
def attention(query, key, value):
    if query.dim() == 2:
        output, weights = attention(query[None], key[None], value[None])
        return output[0], weights[0]
    if query.dim() == 4:
        size = query.shape[:2]
        output, weights = attention(query.flatten(0, 1), key.flatten(0, 1), value.flatten(0, 1))
        return output.unflatten(0, size), weights.unflatten(0, size)
    half = query.dtype in (torch.float16, torch.bfloat16)
    q, k, v = (t.float() if half else t for t in (query, key, value))
    weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1]), dim=-1)
    return torch.bmm(weights, v).to(query.dtype), weights.to(query.dtype)
