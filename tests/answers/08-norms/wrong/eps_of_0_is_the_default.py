"""Takes an ε of 0 for a missing one, by `or`, and uses the default.

Loses: layer-norm, rms-norm, rms-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=None):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide - wide.mean(-1, keepdim=True)
    y = y / torch.sqrt(y.square().mean(-1, keepdim=True) + (eps or 1e-5))
    return (y * gain + bias).to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, eps=None):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean_square = wide.square().mean(-1, keepdim=True)
    return (wide / torch.sqrt(mean_square + (eps or 1e-6)) * gain).to(x.dtype)
