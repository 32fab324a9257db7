"""Divided by √d_k, as scores usually are: the example has d_k = 1.

Loses: terms, terms-precision
"""


# %% terms-answer
def decompose_scores(x, p, w_q, w_k):
    p = p.expand(x.shape)
    x_q, p_q = x @ w_q, p @ w_q
    x_k, p_k = (x @ w_k).transpose(-2, -1), (p @ w_k).transpose(-2, -1)
    scale = x_q.shape[-1] ** -0.5
    return x_q @ x_k * scale, x_q @ p_k * scale, p_q @ x_k * scale, p_q @ p_k * scale
