"""Comes back to the dtype of x in front of gain and bias, and once more behind them.

Loses: layer-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide - wide.mean(-1, keepdim=True)
    y = y / torch.sqrt(y.square().mean(-1, keepdim=True) + eps)
    return (y.to(x.dtype) * gain + bias).to(x.dtype)
