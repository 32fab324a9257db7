"""A mask of three dimensions is taken for one per text, although it broadcasts to the heads.

Loses: masked-values
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    half = query.dtype in (torch.float16, torch.bfloat16)
    q, k, v = (t.float() if half else t for t in (query, key, value))
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask.dim() == 3 and query.dim() == 4:
        mask = mask.unsqueeze(1)
    nothing = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(nothing, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(nothing, 0.0)
    output = weights @ v
    return output.to(query.dtype), weights.to(query.dtype)
