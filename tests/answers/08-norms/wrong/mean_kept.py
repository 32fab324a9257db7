"""Divides by the standard deviation, and leaves the mean in.

Loses: layer-norm, layer-norm-edges, layer-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide / (wide.var(-1, keepdim=True, correction=0) + eps).sqrt()
    return (y * gain + bias).to(x.dtype)
