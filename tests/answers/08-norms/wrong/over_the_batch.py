"""Statistics of a feature over the batch, as BatchNorm.

Loses: layer-norm, layer-norm-edges, layer-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide - wide.mean(0, keepdim=True)
    y = y / (y.square().mean(0, keepdim=True) + eps).sqrt()
    return (y * gain + bias).to(x.dtype)
