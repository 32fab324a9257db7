"""Right, with a warning and words on stderr, which must cost nothing."""

import sys
import warnings

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    warnings.warn("a norm is slow in Python", UserWarning, stacklevel=1)
    print("layer_norm was called", file=sys.stderr)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(-1, keepdim=True)
    size = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    return (centred / size * gain + bias).to(x.dtype)
