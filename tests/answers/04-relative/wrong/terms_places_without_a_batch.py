"""With one table of places, position–position comes without the batch dimension.

Loses: terms, terms-precision
"""


# %% terms-answer
def decompose_scores(x, p, w_q, w_k):
    x_q, p_q = x @ w_q, p @ w_q
    x_k, p_k = (x @ w_k).transpose(-2, -1), (p @ w_k).transpose(-2, -1)
    return x_q @ x_k, x_q @ p_k, p_q @ x_k, p_q @ p_k
