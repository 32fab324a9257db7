"""Sends the rotated part in front of the other.

Loses: absorbed, absorbed-precision
"""

import math

import torch


# %% absorbed-answer
def absorbed_attention(query, w_uk, w_uv, attend):
    d_lat, d_k = w_uk.shape[1:]
    sent = torch.cat((query[..., d_k:], query[..., :d_k] @ w_uk.mT), dim=-1)
    return attend(sent, 1 / math.sqrt(query.shape[-1])) @ w_uv
