"""Permutes the first head only.

Loses: convert
"""

import torch


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    head_dim = len(rows) // n_heads
    place = torch.arange(head_dim)
    order = torch.cat((place[0::2], place[1::2]))
    order = torch.argsort(order) if layout == "interleaved" else order
    return torch.cat((rows[:head_dim][order], rows[head_dim:]))
