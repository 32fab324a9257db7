"""Permutes the columns of weights: the components of the input.

Loses: convert
"""

import torch


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    width = rows.shape[-1] // n_heads if rows.shape[-1] % n_heads == 0 else rows.shape[-1]
    place = torch.arange(width)
    order = torch.cat((place[0::2], place[1::2]))
    order = torch.argsort(order) if layout == "interleaved" else order
    return rows.unflatten(-1, (-1, width))[..., order].flatten(-2)
