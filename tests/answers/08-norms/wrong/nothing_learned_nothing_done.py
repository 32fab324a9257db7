"""Leaves out a bias of zeros and a gain of ones, so these get no gradient and never learn.

Loses: layer-norm, rms-norm
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide - wide.mean(-1, keepdim=True)
    y = y / torch.sqrt(y.square().mean(-1, keepdim=True) + eps) * gain
    if bias.any():
        y = y + bias
    return y.to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide / torch.sqrt(wide.square().mean(-1, keepdim=True) + eps)
    if (gain != 1).any():
        y = y * gain
    return y.to(x.dtype)
