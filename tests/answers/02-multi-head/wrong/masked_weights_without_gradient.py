"""With a mask the weights are computed without gradients.

Loses: heads-masks
"""

import torch


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    c = x if context is None else context
    q, k, v = (
        (t @ w).unflatten(-1, (n_heads, -1)).transpose(1, 2)
        for t, w in ((x, w_q), (c, w_k), (c, w_v))
    )
    if mask is not None:
        with torch.no_grad():
            _, w = attention(q, k, v, mask)
        return (w @ v).transpose(1, 2).flatten(2) @ w_o, w
    o, w = attention(q, k, v)
    return o.transpose(1, 2).flatten(2) @ w_o, w
