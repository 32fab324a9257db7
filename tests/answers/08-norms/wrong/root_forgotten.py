"""Divides by the variance.

Loses: layer-norm, layer-norm-edges, layer-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide - wide.mean(-1, keepdim=True)
    y = y / (y.square().mean(-1, keepdim=True) + eps)
    return (y * gain + bias).to(x.dtype)
