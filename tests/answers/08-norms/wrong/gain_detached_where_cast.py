"""Casts a gain of another dtype, and takes it out of the graph on the way.

Loses: layer-norm, rms-norm
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if gain.dtype != wide.dtype:
        gain = gain.data.to(wide.dtype)
    centred = wide - wide.mean(-1, keepdim=True)
    size = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    return (centred / size * gain + bias).to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if gain.dtype != wide.dtype:
        gain = gain.data.to(wide.dtype)
    size = (wide.square().mean(-1, keepdim=True) + eps).sqrt()
    return (wide / size * gain).to(x.dtype)
