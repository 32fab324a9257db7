"""Where all queries are 0 the values' mean is taken at once, and w_q gets no gradient.

Loses: heads-self
"""

import torch


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    context = x if context is None else context
    query = (x @ w_q).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    key = (context @ w_k).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    value = (context @ w_v).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    if mask is None and not query.any():
        k_len = context.shape[1]
        weights = torch.full((*query.shape[:3], k_len), 1 / k_len, dtype=x.dtype)
        heads = weights @ value
    else:
        heads, weights = attention(query, key, value, mask)
    return heads.transpose(1, 2).flatten(2) @ w_o, weights
