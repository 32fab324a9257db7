"""Written with einsum."""

import torch


# %% attention
def attention(query, key, value):
    scores = torch.einsum("...md,...nd->...mn", query, key) / query.shape[-1] ** 0.5
    weights = scores.softmax(-1)
    return torch.einsum("...mn,...nd->...md", weights, value), weights


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = torch.einsum("...md,...nd->...mn", query, key) / query.shape[-1] ** 0.5
    nothing = ~mask.any(-1, keepdim=True)
    weights = scores.masked_fill(~(mask | nothing), -torch.inf).softmax(-1) * ~nothing
    return torch.einsum("...mn,...nd->...md", weights, value), weights
