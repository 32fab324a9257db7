"""The scale is that of d_v: right where d_v equals d_k.

Loses: heads-self, heads-cross, heads-masks
"""

import math


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    context = x if context is None else context
    d_k, d_v = w_q.shape[-1] // n_heads, w_v.shape[-1] // n_heads
    query = (x @ w_q).unflatten(-1, (n_heads, -1)).transpose(1, 2) * math.sqrt(d_k / d_v)
    key = (context @ w_k).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    value = (context @ w_v).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    heads, weights = attention(query, key, value, mask)
    return heads.transpose(1, 2).flatten(2) @ w_o, weights
