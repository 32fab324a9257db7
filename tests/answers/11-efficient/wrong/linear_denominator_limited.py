"""Keeps the denominator above 1e-10, which features 30 apart go below.

Loses: linear
"""

import torch


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    phi_q = torch.exp(log_query_features - log_query_features.amax(dim=-1, keepdim=True))
    phi_k = torch.exp(log_key_features - log_key_features.amax(dim=(-2, -1), keepdim=True))
    below = phi_q @ phi_k.sum(dim=-2).unsqueeze(-1)
    return (phi_q @ (phi_k.mT @ value)) / below.clamp(min=1e-10)
