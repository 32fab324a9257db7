"""Takes the mean out of x itself, in place.

Loses: layer-norm-edges
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    wide -= wide.mean(-1, keepdim=True)
    y = wide / torch.sqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (y * gain + bias).to(x.dtype)
