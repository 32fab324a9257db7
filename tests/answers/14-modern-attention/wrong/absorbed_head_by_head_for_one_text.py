"""Calls attend for each head where there is one text.

Loses: absorbed
"""

import torch


# %% absorbed-answer
def absorbed_attention(query, w_uk, w_uv, attend):
    d_k = w_uk.shape[-1]
    sent = torch.cat((query[..., :d_k] @ w_uk.mT, query[..., d_k:]), -1)
    scale = query.shape[-1] ** -0.5
    if query.shape[0] == 1:
        return (
            torch.cat([attend(sent[:, h : h + 1], scale) for h in range(query.shape[1])], 1) @ w_uv
        )
    return attend(sent, scale) @ w_uv
