"""-10000 as minus infinity, and weights of hidden keys set to 0: scores may be lower.

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
        s = s.masked_fill(~mask, -1e4)
    w = torch.softmax(s, -1)
    if mask is not None:
        w = w.masked_fill(~mask, 0)
    return (w @ v).transpose(1, 2).flatten(2) @ w_o, w
