"""Everything in float64 and back, with var_mean and powers."""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    variance, mean = torch.var_mean(x.double(), dim=-1, correction=0, keepdim=True)
    y = (x.double() - mean) * (variance + eps) ** -0.5
    return (y * gain.double() + bias.double()).to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.double()
    return (wide * (wide.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * gain).to(x.dtype)
