"""The bias is copied into a float32 tensor; added to float64 scores, it looks like float64.

Loses: t5-scores-precision
"""

import torch


# %% t5-answer
def t5_scores(q, k, table, buckets):
    bias = torch.stack([table[:, h][buckets] for h in range(q.shape[1])], dim=-3).float()
    return q @ k.transpose(-2, -1) + bias
