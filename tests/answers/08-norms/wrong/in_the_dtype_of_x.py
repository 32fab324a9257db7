"""Computes in the dtype of x, so 600² is inf in float16.

Loses: layer-norm-edges, layer-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    y = x - x.mean(-1, keepdim=True)
    y = y / torch.sqrt(y.square().mean(-1, keepdim=True) + eps)
    return (y * gain + bias).to(x.dtype)
