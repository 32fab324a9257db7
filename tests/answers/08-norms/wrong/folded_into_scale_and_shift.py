"""Mean and σ are folded into x · scale + shift, which loses digits where the mean is large.

Loses: layer-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean = wide.mean(-1, keepdim=True)
    scale = gain / torch.sqrt((wide - mean).square().mean(-1, keepdim=True) + eps)
    shift = bias - mean * scale
    return (wide * scale + shift).to(x.dtype)
