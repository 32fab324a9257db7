"""Takes a gain of zeros for one that is not set yet, and uses ones.

Loses: layer-norm, rms-norm
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    gain = gain if gain.any() else torch.ones_like(gain)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide - wide.mean(-1, keepdim=True)
    y = y / torch.sqrt(y.square().mean(-1, keepdim=True) + eps)
    return (y * gain + bias).to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    gain = gain if gain.any() else torch.ones_like(gain)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide / torch.sqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (y * gain).to(x.dtype)
