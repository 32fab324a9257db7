"""Task 4 and task 5 call the functions of tasks 1 and 2."""


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    if context is None:
        context = x
    query, key, value = (
        split_heads(tokens @ w, n_heads) for tokens, w in ((x, w_q), (context, w_k), (context, w_v))
    )
    heads, weights = attention(query, key, value, mask)
    return merge_heads(heads) @ w_o, weights


# %% head-contributions-answer
def head_contributions(heads, w_o):
    blocks = split_heads(w_o.T, heads.shape[1]).transpose(-2, -1)
    return heads @ blocks
