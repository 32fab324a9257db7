"""Adds up the heads, each moved by a product with 0 and 1, and 0 times inf is nan.

Loses: merge-heads
"""

import torch


# %% merge-heads-answer
def merge_heads(x):
    n_heads, d = x.shape[-3], x.shape[-1]
    if x.is_floating_point():
        places = torch.eye(n_heads * d, dtype=x.dtype).unflatten(0, (n_heads, d))
        return (x @ places).sum(dim=-3)
    return x.transpose(-3, -2).flatten(-2)
