"""Takes the numbers of a narrow x out of the graph when it widens them.

Loses: layer-norm, rms-norm
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x if x.dtype == torch.float64 else x.data.float()
    centred = wide - wide.mean(-1, keepdim=True)
    size = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    return (centred / size * gain + bias).to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x if x.dtype == torch.float64 else x.data.float()
    size = (wide.square().mean(-1, keepdim=True) + eps).sqrt()
    return (wide / size * gain).to(x.dtype)
