"""Goes to float32 for the squares only: the mean is rounded to 16 bits.

Loses: layer-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    y = (x - x.mean(-1, keepdim=True)).to(torch.promote_types(x.dtype, torch.float32))
    y = y / (y.square().mean(-1, keepdim=True) + eps).sqrt()
    return (y * gain + bias).to(x.dtype)
