"""Keeps the sum of a feature over all keys below ten thousand.

Loses: linear-precision
"""

import torch


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    phi_q = torch.exp(log_query_features - log_query_features.amax(dim=-1, keepdim=True))
    phi_k = torch.exp(log_key_features - log_key_features.amax(dim=(-2, -1), keepdim=True))
    total = phi_q @ phi_k.sum(dim=-2).clamp(max=1e4).unsqueeze(-1)
    return phi_q @ (phi_k.mT @ value) / total
