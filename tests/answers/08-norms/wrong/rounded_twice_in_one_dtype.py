"""Comes back to the dtype of x and gain together in front of the gain: right where these differ.

Loses: layer-norm-precision
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(-1, keepdim=True)
    size = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normed = (centred / size).to(torch.result_type(x, gain))
    return (normed * gain + bias).to(x.dtype)
