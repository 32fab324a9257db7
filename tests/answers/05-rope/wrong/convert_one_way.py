"""Permutes the same way in both directions.

Loses: convert
"""

import torch


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    heads = rows.unflatten(0, (n_heads, -1))
    place = torch.arange(heads.shape[1])
    return heads[:, torch.cat((place[0::2], place[1::2]))].flatten(0, 1)
