"""The last term is the score less the other three: where places are small, only rounding is left.

Loses: terms-precision
"""


# %% terms-answer
def decompose_scores(x, p, w_q, w_k):
    p = p.expand(x.shape)
    total = (x + p) @ w_q @ ((x + p) @ w_k).mT
    cc = x @ w_q @ (x @ w_k).mT
    cp = x @ w_q @ (p @ w_k).mT
    pc = p @ w_q @ (x @ w_k).mT
    return cc, cp, pc, total - cc - cp - pc
