"""Divides by σ without ε and repairs the nan afterwards: its gradient stays nan.

Loses: layer-norm, layer-norm-edges, layer-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide - wide.mean(-1, keepdim=True)
    y = torch.nan_to_num(y / y.square().mean(-1, keepdim=True).sqrt())
    return (y * gain + bias).to(x.dtype)
