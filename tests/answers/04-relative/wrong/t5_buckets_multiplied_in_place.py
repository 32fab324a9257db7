"""Turns the caller's buckets, in place, into places of the flattened table.

Loses: t5-scores
"""

import torch


# %% t5-answer
def t5_scores(q, k, table, buckets):
    heads = table.shape[1]
    places = buckets.mul_(heads).unsqueeze(-3) + torch.arange(heads).view(-1, 1, 1)
    return q @ k.transpose(-2, -1) + table.flatten()[places]
