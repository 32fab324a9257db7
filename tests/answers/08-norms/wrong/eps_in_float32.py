"""Makes a float32 tensor of ε, which has too few digits beside float64 tokens.

Loses: layer-norm-precision, rms-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide - wide.mean(-1, keepdim=True)
    y = y / torch.sqrt(y.square().mean(-1, keepdim=True) + torch.tensor(eps))
    return (y * gain + bias).to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean_square = wide.square().mean(-1, keepdim=True)
    return (wide / torch.sqrt(mean_square + torch.tensor(eps)) * gain).to(x.dtype)
