"""Statistics over all that one batch entry holds.

Loses: layer-norm, layer-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    dims = tuple(range(1, x.dim())) or (0,)
    y = wide - wide.mean(dims, keepdim=True)
    y = y / (y.square().mean(dims, keepdim=True) + eps).sqrt()
    return (y * gain + bias).to(x.dtype)
