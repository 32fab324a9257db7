"""Limits the exponents from below, so hidden keys count a little.

Loses: block-precision
"""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    t = torch.maximum(largest, scores.amax(-1))
    level = t.masked_fill(t == -math.inf, 0.0)
    shrink, p = (
        torch.exp((largest - level).clamp(min=-80)),
        torch.exp((scores - level[..., None]).clamp(min=-80)),
    )
    return t, shrink * total + p.sum(-1), shrink[..., None] * weighted + p @ value
