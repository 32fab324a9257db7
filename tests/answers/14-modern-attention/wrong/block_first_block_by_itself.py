"""Takes the softmax of the block as the state where no query has seen a key.

Loses: block
"""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    if (largest == -math.inf).all():
        t = scores.amax(-1)
        p = torch.exp(scores - t[..., None])
        return t, p.sum(-1), p @ value
    t = torch.maximum(largest, scores.amax(-1))
    level = t.masked_fill(t == -math.inf, 0.0)
    shrink, p = torch.exp(largest - level), torch.exp(scores - level[..., None])
    return t, shrink * total + p.sum(-1), shrink[..., None] * weighted + p @ value
