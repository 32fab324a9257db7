"""Views the products in their final shape: tokens mixed up among the heads.

Loses: heads-self, heads-cross, heads-masks
"""


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    context = x if context is None else context
    query = (x @ w_q).view(x.shape[0], n_heads, x.shape[1], -1)
    key = (context @ w_k).view(x.shape[0], n_heads, context.shape[1], -1)
    value = (context @ w_v).view(x.shape[0], n_heads, context.shape[1], -1)
    heads, weights = attention(query, key, value, mask)
    return heads.transpose(1, 2).flatten(2) @ w_o, weights
