"""Fills zeros that torch makes as float32, whatever comes in.

Loses: split-heads
"""

import torch


# %% split-heads-answer
def split_heads(x, n_heads):
    d = x.shape[-1] // n_heads
    out = torch.zeros(*x.shape[:-2], n_heads, x.shape[-2], d)
    for h in range(n_heads):
        out[..., h, :, :] = x[..., h * d : (h + 1) * d]
    return out
