"""Takes all numbers through float64, which holds 53 bits of a whole number.

Loses: merge-heads
"""

import torch


# %% merge-heads-answer
def merge_heads(x):
    y = torch.cat([h.double() for h in x.unbind(-3)], -1)
    return y.to(x.dtype)
