"""Takes the inverse for the permutation and the permutation for the inverse.

Loses: convert
"""

import torch


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    heads = rows.unflatten(0, (n_heads, -1))
    place = torch.arange(heads.shape[1])
    order = torch.cat((place[0::2], place[1::2]))
    if layout == "half":
        order = torch.argsort(order)
    return heads[:, order].flatten(0, 1)
