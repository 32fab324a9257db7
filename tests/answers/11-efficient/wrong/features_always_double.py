"""Returns float64, whatever comes in.

Loses: features-precision
"""

import torch


# %% features-answer
def positive_features(x, projection):
    x, projection = x.double(), projection.double()
    scaled = x / x.shape[-1] ** 0.25
    half = scaled.square().sum(dim=-1, keepdim=True) / 2
    return torch.exp(scaled @ projection.T - half)
