"""Queries and keys of the places are differences of large numbers, and lose their digits.

Loses: terms-precision
"""


# %% terms-answer
def decompose_scores(x, p, w_q, w_k):
    p = p.expand(x.shape)
    q, k = (x + p) @ w_q, (x + p) @ w_k
    x_q, x_k = x @ w_q, x @ w_k
    p_q, p_k = q - x_q, k - x_k
    return x_q @ x_k.mT, x_q @ p_k.mT, p_q @ x_k.mT, p_q @ p_k.mT
