"""Knows vectors with up to two leading dimensions, and no heads.

Loses: features
"""

import torch


# %% features-answer
def positive_features(x, projection):
    scaled = x / x.shape[-1] ** 0.25
    half = scaled.square().sum(dim=-1, keepdim=True) / 2
    if x.dim() < 3:
        return torch.exp(scaled @ projection.T - half)
    return torch.exp(torch.einsum("bnd,rd->bnr", scaled, projection) - half)
