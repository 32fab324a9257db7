"""Computes in float32, and returns float64.

Loses: linear-precision
"""


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    q, k = log_query_features.float(), log_key_features.float()
    phi_q = (q - q.amax(dim=-1, keepdim=True)).exp()
    phi_k = (k - k.amax(dim=(-2, -1), keepdim=True)).exp()
    above = phi_q @ (phi_k.mT @ value.float())
    return (above / (phi_q @ phi_k.sum(dim=-2).unsqueeze(-1))).double()
