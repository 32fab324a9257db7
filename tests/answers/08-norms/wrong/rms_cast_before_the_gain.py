"""Casts back before the gain, as some models do: a float32 gain makes it float32.

Loses: rms-norm-precision
"""

import torch


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    size = torch.sqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide / size).to(x.dtype) * gain
