"""Lays heads 0 and 1 side by side and forgets that there may be more.

Loses: merge-heads
"""

import torch


# %% merge-heads-answer
def merge_heads(x):
    return torch.cat([x[..., 0, :, :], x[..., 1, :, :]], dim=-1)
