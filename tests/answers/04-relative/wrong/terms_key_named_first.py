"""The key's part is named first: the two cross terms change places.

Loses: terms, terms-precision
"""


# %% terms-answer
def decompose_scores(x, p, w_q, w_k):
    p = p.expand(x.shape)
    x_q, p_q = x @ w_q, p @ w_q
    x_k, p_k = (x @ w_k).transpose(-2, -1), (p @ w_k).transpose(-2, -1)
    return x_q @ x_k, p_q @ x_k, x_q @ p_k, p_q @ p_k
