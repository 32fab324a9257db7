"""Writes the converted rows into the caller's weights.

Loses: convert
"""

import torch


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    heads = rows.view(n_heads, -1, *rows.shape[1:])
    place = torch.arange(heads.shape[1])
    order = torch.cat((place[0::2], place[1::2]))
    if layout == "interleaved":
        order = torch.argsort(order)
    heads.copy_(heads[:, order])
    return rows
