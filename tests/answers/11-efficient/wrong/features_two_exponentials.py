"""A product of two exponentials, of which one is infinite and the other 0 for long vectors.

Loses: features-precision
"""

import torch


# %% features-answer
def positive_features(x, projection):
    scaled = x / x.shape[-1] ** 0.25
    half = scaled.square().sum(dim=-1, keepdim=True) / 2
    return torch.exp(scaled @ projection.T) * torch.exp(-half)
