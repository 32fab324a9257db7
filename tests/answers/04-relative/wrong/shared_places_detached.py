"""A table of places for all texts is taken for a constant, and no gradient reaches it.

Loses: terms
"""


# %% terms-answer
def decompose_scores(x, p, w_q, w_k):
    if p.dim() == 2:
        p = p.detach().expand(x.shape)
    xq, pq, xk, pk = x @ w_q, p @ w_q, x @ w_k, p @ w_k
    return (
        xq @ xk.transpose(-2, -1),
        xq @ pk.transpose(-2, -1),
        pq @ xk.transpose(-2, -1),
        pq @ pk.transpose(-2, -1),
    )
