"""Written with einsum and three-dimensional matrices."""

import torch


# %% split-heads-answer
def split_heads(x, n_heads):
    return torch.einsum("...thd->...htd", x.reshape(*x.shape[:-1], n_heads, -1))


# %% merge-heads-answer
def merge_heads(x):
    return torch.einsum("...htd->...thd", x).reshape(*x.shape[:-3], x.shape[-2], -1)


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    context = x if context is None else context
    query = torch.einsum("bti,ihd->bhtd", x, w_q.reshape(len(w_q), n_heads, -1))
    key = torch.einsum("bti,ihd->bhtd", context, w_k.reshape(len(w_k), n_heads, -1))
    value = torch.einsum("bti,ihd->bhtd", context, w_v.reshape(len(w_v), n_heads, -1))
    scores = torch.einsum("bhmd,bhnd->bhmn", query, key) / query.shape[-1] ** 0.5
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    nothing = ~mask.any(-1, keepdim=True)
    weights = scores.masked_fill(~(mask | nothing), -torch.inf).softmax(-1) * ~nothing
    blocks = w_o.reshape(n_heads, -1, w_o.shape[1])
    return torch.einsum("bhmn,bhnd,hde->bme", weights, value, blocks), weights


# %% head-contributions-answer
def head_contributions(heads, w_o):
    blocks = w_o.reshape(heads.shape[1], heads.shape[3], -1)
    return torch.einsum("bhtd,hde->bhte", heads, blocks)
