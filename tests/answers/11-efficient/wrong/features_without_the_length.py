"""The factor of the length is missing.

Loses: features, features-precision
"""

import torch


# %% features-answer
def positive_features(x, projection):
    scaled = x / x.shape[-1] ** 0.25
    return torch.exp(scaled @ projection.T)
