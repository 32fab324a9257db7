"""Divides the values of a head by the largest of them, and multiplies the result by it again.

Loses: linear
"""

import torch


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    phi_q = torch.exp(log_query_features - log_query_features.amax(dim=-1, keepdim=True))
    phi_k = torch.exp(log_key_features - log_key_features.amax(dim=(-2, -1), keepdim=True))
    largest = value.abs().amax(dim=(-2, -1), keepdim=True)
    total = phi_q @ phi_k.sum(dim=-2).unsqueeze(-1)
    return phi_q @ (phi_k.mT @ (value / largest)) / total * largest
