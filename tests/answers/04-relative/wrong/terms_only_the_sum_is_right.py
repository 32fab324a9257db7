"""What content alone does not explain is shared out evenly: only the sum is right.

Loses: terms, terms-precision
"""


# %% terms-answer
def decompose_scores(x, p, w_q, w_k):
    p = p.expand(x.shape)
    x_q, p_q = x @ w_q, p @ w_q
    x_k, p_k = (x @ w_k).transpose(-2, -1), (p @ w_k).transpose(-2, -1)
    rest = ((x_q + p_q) @ (x_k + p_k) - x_q @ x_k) / 3
    return x_q @ x_k, rest, rest, rest
