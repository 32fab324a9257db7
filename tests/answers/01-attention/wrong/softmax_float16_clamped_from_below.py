"""In float16, -inf becomes -10000, which other scores may be.

Loses: softmax-edges
"""

import torch


# %% softmax
def softmax(scores, dim):
    x = scores.clamp(min=-1e4) if scores.dtype == torch.float16 else scores
    e = (x - x.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
