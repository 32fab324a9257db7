"""With torch's kernels, where gain and input are brought to one dtype first."""

import torch
from torch.nn import functional as F


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = torch.promote_types(torch.promote_types(x.dtype, gain.dtype), torch.float32)
    y = F.layer_norm(x.to(wide), gain.shape, gain.to(wide), bias.to(wide), eps)
    return y.to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = torch.promote_types(torch.promote_types(x.dtype, gain.dtype), torch.float32)
    return F.rms_norm(x.to(wide), gain.shape, gain.to(wide), eps).to(x.dtype)
