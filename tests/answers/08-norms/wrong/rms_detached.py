"""Detaches the size: right forward, wrong gradient.

Loses: rms-norm
"""

import torch


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    size = torch.sqrt(wide.detach().square().mean(-1, keepdim=True) + eps)
    return (wide / size * gain).to(x.dtype)
