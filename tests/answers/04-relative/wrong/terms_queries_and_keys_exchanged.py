"""W_q makes the keys, and W_k the queries.

Loses: terms, terms-precision
"""


# %% terms-answer
def decompose_scores(x, p, w_q, w_k):
    p = p.expand(x.shape)
    x_q, p_q = x @ w_k, p @ w_k
    x_k, p_k = (x @ w_q).transpose(-2, -1), (p @ w_q).transpose(-2, -1)
    return x_q @ x_k, x_q @ p_k, p_q @ x_k, p_q @ p_k
