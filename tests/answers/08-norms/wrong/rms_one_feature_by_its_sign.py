"""A single feature becomes its sign: right where it is much larger than the root of ε.

Loses: rms-norm
"""

import torch


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if x.shape[-1] == 1:
        return (wide.sign() * gain).to(x.dtype)
    size = (wide.square().mean(-1, keepdim=True) + eps).sqrt()
    return (wide / size * gain).to(x.dtype)
