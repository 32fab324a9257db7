"""Scales the vectors of the caller.

Loses: features
"""

import torch


# %% features-answer
def positive_features(x, projection):
    x /= x.shape[-1] ** 0.25
    half = x.square().sum(dim=-1, keepdim=True) / 2
    return torch.exp(x @ projection.T - half)
