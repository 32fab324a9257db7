"""Buckets that all texts share are looked up once and without a gradient.

Loses: t5-scores
"""

import torch


# %% t5-answer
def t5_scores(q, k, table, buckets):
    if buckets.dim() == 2:
        with torch.no_grad():
            bias = table[buckets].permute(2, 0, 1)
    else:
        bias = table[buckets].permute(0, 3, 1, 2)
    return q @ k.mT + bias
