"""Written with view, permute and contiguous, as older code does."""


# %% split-heads-answer
def split_heads(x, n_heads):
    cut = x.view(*x.shape[:-1], n_heads, x.shape[-1] // n_heads)
    front = range(cut.dim() - 3)
    return cut.permute(*front, -2, -3, -1).contiguous()


# %% merge-heads-answer
def merge_heads(x):
    *front, n_heads, length, d = x.shape
    moved = x.transpose(-2, -3).contiguous()
    return moved.view(*front, length, n_heads * d)


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    context = x if context is None else context
    batch, q_len, _ = x.shape
    k_len = context.shape[1]
    query = (x @ w_q).view(batch, q_len, n_heads, -1).permute(0, 2, 1, 3)
    key = (context @ w_k).view(batch, k_len, n_heads, -1).permute(0, 2, 1, 3)
    value = (context @ w_v).view(batch, k_len, n_heads, -1).permute(0, 2, 1, 3)
    heads, weights = attention(query, key, value, mask)
    return heads.permute(0, 2, 1, 3).contiguous().view(batch, q_len, -1) @ w_o, weights
