"""Calls the machine once for each head.

Loses: absorbed
"""

import math

import torch


# %% absorbed-answer
def absorbed_attention(query, w_uk, w_uv, attend):
    d_lat, d_k = w_uk.shape[1:]
    sent = torch.cat((query[..., :d_k] @ w_uk.mT, query[..., d_k:]), dim=-1)
    scale = 1 / math.sqrt(query.shape[-1])
    heads = [attend(head, scale) for head in sent.split(1, dim=1)]
    return torch.cat(heads, dim=1) @ w_uv
