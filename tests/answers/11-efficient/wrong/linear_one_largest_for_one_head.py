"""Takes off one number for all texts where there is one head.

Loses: linear
"""


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    dims = (-2, -1) if value.shape[1] > 1 else (0, -2, -1)
    q = (log_query_features - log_query_features.amax(-1, keepdim=True)).exp()
    k = (log_key_features - log_key_features.amax(dims, keepdim=True)).exp()
    return q @ (k.mT @ value) / (q @ k.sum(-2).unsqueeze(-1))
