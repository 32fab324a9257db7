"""Squares in float16.

Loses: rms-norm-precision
"""

import torch


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    size = torch.sqrt(x.square().mean(-1, keepdim=True) + eps)
    return (x / size * gain).to(x.dtype)
