"""Permutes all the rows at once: they leave their heads.

Loses: convert
"""

import torch


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    place = torch.arange(len(rows))
    order = torch.cat((place[0::2], place[1::2]))
    return rows[torch.argsort(order) if layout == "interleaved" else order]
