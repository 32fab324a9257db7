"""Stacks the rows one by one, which fails where there is none.

Loses: softmax-edges
"""

import torch


# %% softmax
def softmax(scores, dim):
    rows = []
    x = scores.movedim(dim, -1)
    flat = x.reshape(-1, x.shape[-1])
    for row in flat:
        e = (row - row.max()).exp()
        rows.append(e / e.sum())
    return torch.stack(rows).reshape(x.shape).movedim(-1, dim)
