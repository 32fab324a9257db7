"""Variance as mean square minus squared mean: no digits left far from 0.

Loses: layer-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean = wide.mean(-1, keepdim=True)
    variance = wide.square().mean(-1, keepdim=True) - mean.square()
    y = (wide - mean) / torch.sqrt(variance + eps)
    return (y * gain + bias).to(x.dtype)
