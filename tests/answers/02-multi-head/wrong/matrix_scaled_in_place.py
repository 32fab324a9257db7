"""Scales the caller's w_q in place: a second call gives something else.

Loses: heads-self, heads-cross, heads-masks
"""

import math


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    w_q *= (w_q.shape[1] // n_heads) ** -0.5
    context = x if context is None else context
    query = (x @ w_q).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    key = (context @ w_k).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    value = (context @ w_v).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    heads, weights = attention(query * math.sqrt(query.shape[-1]), key, value, mask)
    return heads.transpose(1, 2).flatten(2) @ w_o, weights
