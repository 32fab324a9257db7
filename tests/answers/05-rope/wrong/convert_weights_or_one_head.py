"""Forgets that biases move too, where there are several heads.

Loses: convert
"""

import torch


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    if rows.dim() == 1 and n_heads > 1:
        return rows.clone()
    heads = rows.unflatten(0, (n_heads, -1))
    place = torch.arange(heads.shape[1])
    order = torch.cat((place[0::2], place[1::2]))
    if layout == "interleaved":
        order = torch.argsort(order)
    return heads[:, order].flatten(0, 1)
