"""Gives the caller's table of places a batch dimension, in place.

Loses: terms
"""


# %% terms-answer
def decompose_scores(x, p, w_q, w_k):
    if p.dim() == 2:
        p.unsqueeze_(0)
    x_q, p_q = x @ w_q, (p @ w_q).expand(len(x), -1, -1)
    x_k, p_k = x @ w_k, (p @ w_k).expand(len(x), -1, -1)
    return tuple(a @ b.transpose(-2, -1) for a in (x_q, p_q) for b in (x_k, p_k))
