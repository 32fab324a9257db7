"""Returns float64, whatever comes in.

Loses: absorbed-precision
"""

import math

import torch


# %% absorbed-answer
def absorbed_attention(query, w_uk, w_uv, attend):
    d_lat, d_k = w_uk.shape[1:]
    query, w_uk, w_uv = query.double(), w_uk.double(), w_uv.double()
    sent = torch.cat((query[..., :d_k] @ w_uk.mT, query[..., d_k:]), dim=-1)
    return attend(sent, 1 / math.sqrt(query.shape[-1])) @ w_uv
