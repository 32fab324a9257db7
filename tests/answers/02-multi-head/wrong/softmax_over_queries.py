"""Normalizes over the queries in place of the keys.

Loses: heads-self, heads-cross, heads-masks, heads-precision
"""

import math

import torch


# %% multi-head-answer
def softmax_of_columns(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = torch.softmax(scores, dim=-2)
    return weights @ value, weights


def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    context = x if context is None else context
    query = (x @ w_q).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    key = (context @ w_k).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    value = (context @ w_v).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    heads, weights = softmax_of_columns(query, key, value, mask)
    return heads.transpose(1, 2).flatten(2) @ w_o, weights
