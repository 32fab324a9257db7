"""Computes in float32 and returns float64: seven digits are left.

Loses: terms-precision
"""


# %% terms-answer
def decompose_scores(x, p, w_q, w_k):
    x, p, w_q, w_k = (t.float() for t in (x, p.expand(x.shape), w_q, w_k))
    x_q, p_q = x @ w_q, p @ w_q
    x_k, p_k = (x @ w_k).transpose(-2, -1), (p @ w_k).transpose(-2, -1)
    return tuple(t.double() for t in (x_q @ x_k, x_q @ p_k, p_q @ x_k, p_q @ p_k))
