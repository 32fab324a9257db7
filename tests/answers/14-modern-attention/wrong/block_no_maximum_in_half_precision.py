"""Computes half precision in float32 without subtracting the largest score.

Loses: block-precision
"""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    t = torch.maximum(largest, scores.amax(-1))
    level = t.masked_fill(t == -math.inf, 0.0)
    if scores.dtype in (torch.float16, torch.bfloat16):
        p = scores.float().exp()
        z = total.float() * largest.float().exp() + p.sum(-1)
        u = weighted.float() * largest.float().exp()[..., None] + p @ value.float()
        e = level.float().exp()
        return t, (z / e).to(t.dtype), (u / e[..., None]).to(t.dtype)
    shrink, p = torch.exp(largest - level), torch.exp(scores - level[..., None])
    return t, shrink * total + p.sum(-1), shrink[..., None] * weighted + p @ value
