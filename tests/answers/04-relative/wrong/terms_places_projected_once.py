"""Projects the places once for each shape, as if they and the matrices never changed.

Loses: terms, terms-precision
"""


# %% terms-answer
def decompose_scores(x, p, w_q, w_k, known={}):
    shape = p.shape, w_q.shape
    if shape not in known:
        known[shape] = (p @ w_q).detach(), (p @ w_k).detach()
    p_q, p_k = (t.expand(*x.shape[:-1], -1) for t in known[shape])
    x_q, x_k = x @ w_q, x @ w_k
    return tuple(a @ b.transpose(-2, -1) for a in (x_q, p_q) for b in (x_k, p_k))
