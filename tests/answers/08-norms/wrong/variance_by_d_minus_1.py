"""Takes torch.var as it is: divided by d - 1.

Loses: layer-norm, layer-norm-edges, layer-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide - wide.mean(-1, keepdim=True)
    y = y / (wide.var(-1, keepdim=True) + eps).sqrt()
    return (y * gain + bias).to(x.dtype)
