"""One largest number for the whole tensor: other queries and heads vanish.

Loses: linear, linear-precision
"""

import torch


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    phi_q = torch.exp(log_query_features - log_query_features.amax())
    phi_k = torch.exp(log_key_features - log_key_features.amax())
    total = phi_q @ phi_k.sum(dim=-2).unsqueeze(-1)
    return phi_q @ (phi_k.mT @ value) / total
