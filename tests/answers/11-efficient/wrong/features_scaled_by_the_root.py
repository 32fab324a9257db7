"""Divides by the square root: a score would be divided by d_k.

Loses: features, features-precision
"""

import math

import torch


# %% features-answer
def positive_features(x, projection):
    scaled = x / math.sqrt(x.shape[-1])
    half = scaled.square().sum(dim=-1, keepdim=True) / 2
    return torch.exp(scaled @ projection.T - half)
