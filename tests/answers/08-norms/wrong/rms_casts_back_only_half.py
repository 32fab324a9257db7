"""Only 16 bits are cast back, so a float32 x with a float64 gain gives float64.

Loses: rms-norm-precision
"""

import torch


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    size = (wide.square().mean(-1, keepdim=True) + eps).sqrt()
    result = wide / size * gain
    return result.to(x.dtype) if x.dtype.itemsize == 2 else result
