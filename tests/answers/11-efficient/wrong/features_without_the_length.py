"""The factor of the length is missing.

Loses: features
"""

import torch


# %% features-answer
def positive_features(x, projection):
    scaled = x / x.shape[-1] ** 0.25
    return torch.exp(scaled @ projection.T)
