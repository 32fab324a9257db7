"""Adds a small number, as a well-known implementation does.

Loses: features-precision
"""

import torch


# %% features-answer
def positive_features(x, projection):
    scaled = x / x.shape[-1] ** 0.25
    half = scaled.square().sum(dim=-1, keepdim=True) / 2
    return torch.exp(scaled @ projection.T - half) + 1e-6
