"""Makes a tensor of ε in the dtype of x: in float16 a small one is 0.

Loses: layer-norm-precision, rms-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(-1, keepdim=True)
    size = (centred.square().mean(-1, keepdim=True) + x.new_tensor(eps)).sqrt()
    return (centred / size * gain + bias).to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    size = (wide.square().mean(-1, keepdim=True) + x.new_tensor(eps)).sqrt()
    return (wide / size * gain).to(x.dtype)
