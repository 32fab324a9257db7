"""Where nobody sees anything, new zeros are returned, which no gradient flows through.

Loses: heads-masks
"""


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    context = x if context is None else context
    if mask is not None and not mask.any():
        weights = x.new_zeros(x.shape[0], n_heads, x.shape[1], context.shape[1])
        return x.new_zeros(x.shape), weights
    query = (x @ w_q).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    key = (context @ w_k).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    value = (context @ w_v).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    heads, weights = attention(query, key, value, mask)
    return heads.transpose(1, 2).flatten(2) @ w_o, weights
