"""The mean taken out by a matrix, sums by einsum."""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    d = x.shape[-1]
    centre = torch.eye(d, dtype=wide.dtype) - torch.ones(d, d, dtype=wide.dtype) / d
    y = wide @ centre
    variance = torch.einsum("...i,...i->...", y, y)[..., None] / d
    return torch.addcmul(bias, y / (variance + eps).sqrt(), gain).to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    size = torch.einsum("...i,...i->...", wide, wide) / x.shape[-1] + eps
    return torch.einsum("...i,...,i->...i", wide, size.rsqrt(), gain.to(wide.dtype)).to(x.dtype)
