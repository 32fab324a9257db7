"""attention clamps scores to the range of float16, in every dtype.

Loses: attention-edges
"""

import math

import torch


# %% attention
def attention(query, key, value):
    half = query.dtype in (torch.float16, torch.bfloat16)
    q, k, v = (t.float() if half else t for t in (query, key, value))
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.clamp(-60000, 60000)
    weights = torch.softmax(scores, dim=-1)
    output = weights @ v
    return output.to(query.dtype), weights.to(query.dtype)
