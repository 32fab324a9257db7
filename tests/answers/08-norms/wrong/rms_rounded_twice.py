"""Comes back to the dtype of x in front of the gain, and once more behind it.

Loses: rms-norm-precision
"""

import torch


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    size = torch.sqrt(wide.square().mean(-1, keepdim=True) + eps)
    return ((wide / size).to(x.dtype) * gain).to(x.dtype)
