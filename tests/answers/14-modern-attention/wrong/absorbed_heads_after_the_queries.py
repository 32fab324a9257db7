"""Sends the vectors with heads and queries exchanged.

Loses: absorbed
"""

import math

import torch


# %% absorbed-answer
def absorbed_attention(query, w_uk, w_uv, attend):
    d_k, scale = w_uk.shape[-1], 1 / math.sqrt(query.shape[-1])
    sent = torch.cat((query[..., :d_k] @ w_uk.mT, query[..., d_k:]), dim=-1)
    averages = attend(sent.transpose(1, 2), scale).transpose(1, 2)
    return averages @ w_uv
