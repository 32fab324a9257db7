"""Picks the components by products with 0 and 1, and 0 times inf is nan.

Loses: split-heads
"""

import torch


# %% split-heads-answer
def split_heads(x, n_heads):
    d = x.shape[-1] // n_heads
    if x.is_floating_point():
        picks = torch.eye(x.shape[-1], dtype=x.dtype).unflatten(-1, (n_heads, d))
        return torch.einsum("...ti,ihd->...htd", x, picks)
    return x.unflatten(-1, (n_heads, d)).transpose(-3, -2)
