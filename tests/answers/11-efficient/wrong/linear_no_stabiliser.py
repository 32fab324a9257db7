"""Takes the exponentials as they are: they overflow.

Loses: linear, linear-precision
"""


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    phi_q, phi_k = log_query_features.exp(), log_key_features.exp()
    total = phi_q @ phi_k.sum(dim=-2).unsqueeze(-1)
    return phi_q @ (phi_k.mT @ value) / total
