"""The bias is looked up in NumPy: the table never learns.

Loses: t5-scores
"""

import torch


# %% t5-answer
def t5_scores(q, k, table, buckets):
    bias = torch.from_numpy(table.detach().numpy()[buckets.numpy()])
    return q @ k.transpose(-2, -1) + bias.movedim(-1, -3)
