"""Opens empty rows in an expanded mask, which is the argument itself if it is full.

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
    if mask is None:
        w = torch.softmax(s, -1)
    else:
        full = mask.expand(s.shape) if mask.shape == s.shape else mask.expand(s.shape).clone()
        some = full.any(-1, keepdim=True)
        full |= ~some
        w = torch.softmax(s.masked_fill(~full, -math.inf), -1) * some
    return (w @ v).transpose(1, 2).flatten(2) @ w_o, w
