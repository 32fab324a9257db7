"""Divides by the root of the number of features.

Loses: features, features-precision
"""

import math

import torch


# %% features-answer
def positive_features(x, projection):
    scaled = x / x.shape[-1] ** 0.25
    half = scaled.square().sum(dim=-1, keepdim=True) / 2
    return torch.exp(scaled @ projection.T - half) / math.sqrt(len(projection))
