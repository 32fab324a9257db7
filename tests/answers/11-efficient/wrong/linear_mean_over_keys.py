"""Divides by the number of keys in place of the sum of the products.

Loses: linear
"""

import torch


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    phi_q = torch.exp(log_query_features - log_query_features.amax(dim=-1, keepdim=True))
    phi_k = torch.exp(log_key_features - log_key_features.amax(dim=(-2, -1), keepdim=True))
    return phi_q @ (phi_k.mT @ value) / phi_k.shape[-2]
