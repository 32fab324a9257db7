"""Takes one largest logarithm for the queries of all heads.

Loses: linear
"""


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    q = (log_query_features - log_query_features.amax(dim=(1, 3), keepdim=True)).exp()
    k = (log_key_features - log_key_features.amax(dim=(2, 3), keepdim=True)).exp()
    return (q @ (k.mT @ value)) / (q @ k.sum(2)[..., None])
