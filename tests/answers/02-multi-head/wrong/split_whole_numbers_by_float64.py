"""Takes whole numbers through float64, which holds 53 bits of them.

Loses: split-heads
"""

import torch


# %% split-heads-answer
def split_heads(x, n_heads):
    p = torch.eye(x.shape[-1], dtype=torch.float64)
    y = (x.double() @ p).to(x.dtype) if not x.is_floating_point() else x
    return y.unflatten(-1, (n_heads, -1)).transpose(-3, -2)
