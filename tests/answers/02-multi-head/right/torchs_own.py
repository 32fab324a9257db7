"""The output from PyTorch's `multi_head_attention_forward` pieces, the weights beside it."""

import torch
from torch.nn import functional as F


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    context = x if context is None else context

    def cut(tokens, w):
        return torch.stack((tokens @ w).chunk(n_heads, dim=-1), dim=1)

    query, key, value = cut(x, w_q), cut(context, w_k), cut(context, w_v)
    _, weights = attention(query, key, value, mask)
    heads = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    if mask is not None:
        heads = heads.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return torch.cat(heads.unbind(1), dim=-1) @ w_o, weights


# %% merge-heads-answer
def merge_heads(x):
    return torch.cat(x.unbind(-3), dim=-1)


# %% split-heads-answer
def split_heads(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=-3)
