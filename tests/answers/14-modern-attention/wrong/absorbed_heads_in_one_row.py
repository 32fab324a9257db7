"""Sends the heads one after another, as if they were queries of one head.

Loses: absorbed
"""

import math

import torch


# %% absorbed-answer
def absorbed_attention(query, w_uk, w_uv, attend):
    d_k, scale = w_uk.shape[-1], 1 / math.sqrt(query.shape[-1])
    sent = torch.cat((query[..., :d_k] @ w_uk.mT, query[..., d_k:]), dim=-1)
    averages = attend(sent.flatten(1, 2).unsqueeze(1), scale).view(*sent.shape[:3], -1)
    return averages @ w_uv
