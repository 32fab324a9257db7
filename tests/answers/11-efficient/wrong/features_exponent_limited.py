"""Limits the exponents to what float32 can take.

Loses: features-precision
"""

import torch


# %% features-answer
def positive_features(x, projection):
    xs = x / x.shape[-1] ** 0.25
    e = xs @ projection.T - xs.square().sum(-1, keepdim=True) / 2
    return torch.exp(torch.clamp(e, -88.0, 88.0))
