"""Replaces what is not a number in float64 only.

Loses: block-precision
"""

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    t = torch.maximum(largest, scores.amax(-1))
    shrink, p = torch.exp(largest - t), torch.exp(scores - t[..., None])
    if scores.dtype == torch.float64:
        shrink, p = shrink.nan_to_num(0.0), p.nan_to_num(0.0)
    return t, shrink * total + p.sum(-1), shrink[..., None] * weighted + p @ value
