"""Adds -inf and replaces nan by 0 afterwards: the gradient is still nan.

Loses: heads-masks
"""

import math

import torch


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    c = x if context is None else context
    q, k, v = (
        (t @ w).unflatten(-1, (n_heads, -1)).transpose(1, 2)
        for t, w in ((x, w_q), (c, w_k), (c, w_v))
    )
    s = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        s = s + torch.zeros(mask.shape, dtype=s.dtype).masked_fill(~mask, -math.inf)
    w = torch.softmax(s, -1).nan_to_num(0.0)
    return (w @ v).transpose(1, 2).flatten(2) @ w_o, w
