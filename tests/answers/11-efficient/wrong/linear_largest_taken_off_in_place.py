"""Takes the largest logarithms off the tensors of the caller.

Loses: linear
"""


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    log_query_features -= log_query_features.amax(dim=-1, keepdim=True)
    log_key_features -= log_key_features.amax(dim=(-2, -1), keepdim=True)
    phi_q, phi_k = log_query_features.exp(), log_key_features.exp()
    return (phi_q @ (phi_k.mT @ value)) / (phi_q @ phi_k.sum(dim=-2).unsqueeze(-1))
