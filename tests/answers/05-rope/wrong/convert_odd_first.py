"""Puts the odd rows in front of the even ones: every pair is mirrored.

Loses: convert
"""

import torch


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    heads = rows.unflatten(0, (n_heads, -1))
    place = torch.arange(heads.shape[1])
    order = torch.cat((place[1::2], place[0::2]))
    if layout == "interleaved":
        order = torch.argsort(order)
    return heads[:, order].flatten(0, 1)
