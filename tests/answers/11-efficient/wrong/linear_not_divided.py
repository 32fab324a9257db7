"""The sum is not divided by the total.

Loses: linear
"""


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    phi_q, phi_k = log_query_features.exp(), log_key_features.exp()
    return phi_q @ (phi_k.mT @ value)
