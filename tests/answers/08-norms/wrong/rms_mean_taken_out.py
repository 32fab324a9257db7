"""Takes the mean out, as LayerNorm.

Loses: rms-norm, rms-norm-precision
"""

import torch


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    wide = wide - wide.mean(-1, keepdim=True)
    return (wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt() * gain).to(x.dtype)
