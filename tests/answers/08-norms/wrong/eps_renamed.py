"""Calls ε `epsilon`, so a call that names `eps` fails.

Loses: layer-norm-precision, rms-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, epsilon=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(-1, keepdim=True)
    size = (centred.square().mean(-1, keepdim=True) + epsilon).sqrt()
    return (centred / size * gain + bias).to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, epsilon=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    size = (wide.square().mean(-1, keepdim=True) + epsilon).sqrt()
    return (wide / size * gain).to(x.dtype)
