"""The length is that of the vector before the scaling.

Loses: features, features-precision
"""

import torch


# %% features-answer
def positive_features(x, projection):
    scaled = x / x.shape[-1] ** 0.25
    half = x.square().sum(dim=-1, keepdim=True) / 2
    return torch.exp(scaled @ projection.T - half)
