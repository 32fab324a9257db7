"""Scales the caller's own context, where there is one.

Loses: heads-cross
"""


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    if context is None:
        context = x
    else:
        context /= 2
        w_k, w_v = 2 * w_k, 2 * w_v
    query = (x @ w_q).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    key = (context @ w_k).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    value = (context @ w_v).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    heads, weights = attention(query, key, value, mask)
    return heads.transpose(1, 2).flatten(2) @ w_o, weights
