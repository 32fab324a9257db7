"""Divides a float64 x in place: `to` does not copy what has the dtype already.

Loses: rms-norm
"""

import torch


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    size = torch.sqrt(wide.square().mean(-1, keepdim=True) + eps)
    with torch.no_grad():
        wide /= size
    return (wide * gain).to(x.dtype)
