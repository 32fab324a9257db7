"""The length is summed over all vectors: right for a single one.

Loses: features, features-precision
"""

import torch


# %% features-answer
def positive_features(x, projection):
    scaled = x / x.shape[-1] ** 0.25
    half = scaled.square().sum() / 2
    return torch.exp(scaled @ projection.T - half)
